# mono: its C# compiler, mcs.
programs='mono mcs'
packages='mono-runtime mono-mcs'
licence=MIT
varies='*.exe' # a random number

run() {
  perl -e 'print "using System;\n";
    for my $i (1 .. $ARGV[0]) {
      print "class C$i { public int F(int a) { int s = 0; for (int k = 0; k < a; k++) s += k * $i;",
        " return s; } }\n";
    }
    print "class M { static void Main() { Console.WriteLine(new C1().F(9)); } }\n"' \
    "$(part 3000)" >input.cs
  record mcs -out:output.exe input.cs
}
