# links2: formats a page as text.
programs=links2
packages=links2
licence=GPL-2.0-or-later

run() {
  perl -e 'print "<html><table>", map("<tr><td>row $_<td><b>" . $_ * 7 . "</b></tr>\n", 1 .. shift), "</table></html>"' "$(part 3000)" >page.html
  record links2 -dump page.html
}
