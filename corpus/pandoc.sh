# pandoc, by Haskell's runtime.
programs=pandoc
packages=pandoc
licence=GPL-2.0-or-later

run() {
  text "$(part 500)" | sed '5~5s/.*/\n## &\n/; 3~5s/.*/\n* &\n/' >input.md
  record pandoc -f markdown -t html input.md
}
