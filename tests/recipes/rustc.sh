# rustc: four code generation threads of LLVM.
programs=rustc
packages=rustc
licence='MIT OR Apache-2.0'

run() {
  perl -e 'print "#![allow(dead_code)]\n"; for my $i (1 .. $ARGV[0]) { print "pub mod m$i { use std::collections::BTreeMap;
    #[derive(Debug, Clone, PartialEq)] pub struct S { pub a: Vec<u32>, pub b: BTreeMap<String, u64> }
    pub fn f(n: u32) -> S { S { a: (0..n).map(|x| x * $i).collect(), b: (0..n).map(|x| (format!(\"{:?}\", x), x as u64)).collect() } } }\n" }
    print "pub fn all() -> usize { ", join(" + ", map { "m$_\::f($_).a.len()" } 1 .. $ARGV[0]), " }\n"' "$(part 40)" >input.rs
  record rustc --crate-type=lib -O -C codegen-units=4 -o libinput.rlib input.rs
}
