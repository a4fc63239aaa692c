# erl: its schedulers pass messages among processes.
programs=erl
packages=erlang-base
licence=Apache-2.0

run() {
  record erl +S 2:2 -noinput -boot start_clean -eval "
    Max = $(part 5000),
    Work = fun(N) ->
      Self = self(),
      Sum = fun(X) -> Self ! {N, X, lists:sum(lists:seq(1, X * 10))} end,
      [spawn(fun() -> Sum(X) end) || X <- lists:seq(1, Max)],
      lists:sum([receive {N, X, V} -> V end || X <- lists:seq(1, Max)])
    end,
    io:format(\"~p~n\", [[Work(N) || N <- [1, 2]]]),
    T = ets:new(t, [public]),
    [ets:insert(T, {N, lists:duplicate(N rem 50, N)}) || N <- lists:seq(1, 6 * Max)],
    io:format(\"~p~n\", [ets:info(T, size)]),
    halt(0)."
}
