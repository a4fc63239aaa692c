# lilypond: engraves a melody, by Guile.
programs=lilypond
packages=lilypond
licence=GPL-3.0-or-later
varies='*.pdf err'

run() {
  cat >input.ly <<'END'
\version "2.22.0"
\score { \new Staff \relative { \repeat unfold 12 { c4 d8 e f4 g | a2 b4 c, } } }
END
  record lilypond -s input.ly
}
