# R: a linear model, a fit and sorts.
programs=Rscript
packages=r-base-core
licence=GPL-2.0-or-later

run() {
  record Rscript --vanilla -e "set.seed(1); n <- $(part 200000); x <- data.frame(a = rnorm(n), b = runif(n), c = sample(letters, n, TRUE))
    print(coef(lm(a ~ b + c, x))); print(head(sort(tapply(x\$a, x\$c, mean)))); m <- matrix(rnorm(40000), 200); print(dim(solve(m)))"
}
