# ghc: three modules, compiled by two threads.
programs=ghc
packages=ghc
licence=BSD-3-Clause

run() {
  for module in A B C; do
    {
      echo "module $module where"
      i=0
      while [ $i -lt "$(part 200)" ]; do
        printf 'f%d :: Int -> [Int] -> Int\nf%d a b = foldr (\\x y -> x * %d + y) a (map (+ a) b)\n' $i $i $i
        i=$((i + 1))
      done
    } >$module.hs
  done
  printf 'module Main where\nimport qualified A\nimport qualified B\nimport qualified C\nmain :: IO ()
main = print (A.f0 1 [2] + B.f1 3 [4] + C.f2 5 [6])\n' >Main.hs
  record ghc -v0 -O1 -j2 -c --make Main.hs -o main || return
}
varies='*.o *.hi main' # temporary names
