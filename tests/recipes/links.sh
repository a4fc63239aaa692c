# links2: formats a page as text.
programs=links2
packages=links2
licence=GPL-2.0-or-later

run() {
  {
    echo '<html><table>'
    perl -e 'print "<tr><td>row $_<td><b>", $_ * 7, "</b></tr>\n" for 1 .. shift' "$(part 3000)"
    echo '</table></html>'
  } >page.html
  record links2 -dump page.html
}
