# csound: an orchestra, played by two threads.
programs=csound
packages=csound
licence=LGPL-2.1-or-later
varies='err *.wav' # times

run() {
  notes=$(perl -e 'print "i 1 ", $_ / 10, " 2 ", 100 + $_ * 7, "\n" for 0 .. shift' "$(part 1000)")
  cat >piece.csd <<END
<CsoundSynthesizer>
<CsInstruments>
sr = 44100
ksmps = 64
nchnls = 1
0dbfs = 1
instr 1
  a1 vco2 0.05, p4
  a2 moogladder a1, 2000, 0.3
  out a2
endin
</CsInstruments>
<CsScore>
$notes
</CsScore>
</CsoundSynthesizer>
END
  record csound -d -m 0 -j 2 -W -o output.wav piece.csd
}
