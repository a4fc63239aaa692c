# swipl: goals on two threads, and a database.
programs=swipl
packages=swi-prolog-nox
licence=BSD-2-Clause

run() {
  record swipl -t halt -g "numlist(1, $(part 100000), L),
    forall(member(X, L), (Y is X mod 97, assertz(f(X, Y)))),
    concurrent_maplist([N, S]>>(aggregate_all(count, f(_, N), S)), [1, 2, 3, 4], R), writeln(R),
    findall(A-T, (member(X, L), atom_concat(a, X, A), term_to_atom(g(X), T)), P),
    length(P, Z), writeln(Z)"
}
