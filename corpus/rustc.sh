# rustc: four code generation threads of LLVM.
programs=rustc
packages=rustc
licence='MIT OR Apache-2.0'

run() {
  perl -e 'print "#![allow(dead_code)]\n";
    for my $i (1 .. $ARGV[0]) {
      print "pub mod m$i {\n    use std::collections::BTreeMap;\n",
        "    #[derive(Debug, Clone, PartialEq)]\n",
        "    pub struct S { pub a: Vec<u32>, pub b: BTreeMap<String, u64> }\n",
        "    pub fn f(n: u32) -> S {\n        S { a: (0..n).map(|x| x * $i).collect(),\n",
        "            b: (0..n).map(|x| (format!(\"{:?}\", x), x as u64)).collect() }\n    }\n}\n";
    }
    my @sizes = map { "m$_" . "::f($_).a.len()" } 1 .. $ARGV[0];
    print "pub fn all() -> usize { ", join(" + ", @sizes), " }\n"' "$(part 40)" >input.rs
  record rustc --crate-type=lib -O -C codegen-units=4 -o libinput.rlib input.rs
}
