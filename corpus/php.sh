# php: strings, arrays and regular expressions, without PHP's own pools.
programs=php
packages=php-cli
licence=PHP-3.01

run() {
  USE_ZEND_ALLOC=0 record php -n -r "
    for (\$i = 0; \$i < $(part 300000); \$i++)
      \$a['k' . \$i % 5000][] = str_repeat('x', \$i % 90);
    echo count(\$a), ' ', strlen(json_encode(\$a)), ' ',
      preg_match_all('/x{3}/', json_encode(\$a)), PHP_EOL;"
}
