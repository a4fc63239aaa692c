# lilypond: engraves a melody, by Guile.
programs=lilypond
packages=lilypond
licence=GPL-3.0-or-later
varies='*.pdf err'

run() {
  printf '%s\n' '\version "2.22.0" \score { \new Staff \relative { \repeat unfold 12 { c4 d8 e f4 g | a2 b4 c, } } }' >input.ly
  record lilypond -s input.ly
}
