# ghc: three modules, compiled by two threads.
programs=ghc
packages=ghc
licence=BSD-3-Clause
varies='*.o *.hi' # temporary names

run() {
  for module in A B C; do
    perl -e 'print "module $ARGV[0] where\n";
      for my $i (0 .. $ARGV[1]) {
        print "f$i :: Int -> [Int] -> Int\nf$i a b = foldr (\\x y -> x * $i + y) a (map (+ a) b)\n";
      }' $module "$(part 200)" >$module.hs
  done
  cat >Main.hs <<'END'
module Main where
import qualified A
import qualified B
import qualified C
main :: IO ()
main = print (A.f0 1 [2] + B.f1 3 [4] + C.f2 5 [6])
END
  record ghc -v0 -O1 -j2 -c --make Main.hs
}
