# poly: Standard ML on its threads.
programs=poly
packages=polyml
licence=LGPL-2.1-or-later
varies=log.txt

run() {
  cat >main.sml <<END
fun range a b = if a >= b then [] else a :: range (a + 1) b
val m = Thread.Mutex.mutex ()
val done = Thread.ConditionVar.conditionVar ()
val left = ref 3
fun work n () =
  (List.foldl (fn (x, s) => (x * n + s) mod 1000003) 0 (range 0 $(part 500000));
   Thread.Mutex.lock m;
   left := !left - 1;
   Thread.ConditionVar.signal done;
   Thread.Mutex.unlock m)
val _ =
  (List.app (fn n => ignore (Thread.Thread.fork (work n, []))) [1, 2, 3];
   Thread.Mutex.lock m;
   while !left > 0 do Thread.ConditionVar.wait (done, m);
   print "done\n")
END
  record poly -q --use main.sml </dev/null >log.txt
}
