# ldc2: compiles a D program, by LLVM.
programs=ldc2
packages=ldc
licence=BSD-3-Clause

run() {
  perl -e 'print "module input;\nimport std.algorithm, std.array, std.conv, std.range;\n";
    for my $i (1 .. $ARGV[0]) {
      print "string f$i(int n)\n{\n    return iota(n).map!(a => a * $i).filter!(a => a % 3 == 0)",
        ".map!(to!string).join(\",\");\n}\n";
    }' "$(part 40)" >input.d
  record ldc2 -c -O1 -of=output.o input.d
}
