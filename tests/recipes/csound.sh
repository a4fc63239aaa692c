# csound: an orchestra, played by two threads.
programs=csound
packages=csound
licence=LGPL-2.1-or-later
varies='err *.wav' # times

run() {
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
$(i=0; while [ $i -lt "$(part 1000)" ]; do echo "i 1 $((i / 10)).$((i % 10)) 2 $((100 + i * 7))"; i=$((i + 1)); done)
</CsScore>
</CsoundSynthesizer>
END
  record csound -d -m 0 -j 2 -W -o output.wav piece.csd
}
