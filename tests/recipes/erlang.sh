# erl: its schedulers pass messages among processes.
programs=erl
packages=erlang-base
licence=Apache-2.0

run() {
  record erl +S 2:2 -noinput -boot start_clean -eval "
    F = fun(_) -> S = self(), [spawn(fun() -> S ! {X, lists:sum(lists:seq(1, X * 10))} end) || X <- lists:seq(1, $(part 5000))],
      lists:sum([receive {X, V} -> V end || X <- lists:seq(1, $(part 5000))]) end,
    io:format(\"~p~n\", [[F(N) || N <- [1, 2]]]), T = ets:new(t, [public]),
    [ets:insert(T, {N, lists:duplicate(N rem 50, N)}) || N <- lists:seq(1, $(part 30000))],
    io:format(\"~p~n\", [ets:info(T, size)]), halt(0)."
}
