# R: a linear model, sorts and an inverse matrix.
programs=Rscript
packages=r-base-core
licence=GPL-2.0-or-later

run() {
  cat >main.R <<END
set.seed(1)
n <- $(part 200000)
x <- data.frame(a = rnorm(n), b = runif(n), c = sample(letters, n, TRUE))
print(coef(lm(a ~ b + c, x)))
print(head(sort(tapply(x\$a, x\$c, mean))))
print(dim(solve(matrix(rnorm(40000), 200))))
END
  record Rscript --vanilla main.R
}
