#!/bin/sh
# Usage: make_exports.sh TABLE MAP OPTIONS. TABLE is preprocessed: `export "symbol"`, any number a line. Writes the
# version script and the linker's options.
set -eu
symbols=$(grep -o 'export "[^"]*"' "$1" | sed 's/export "\(.*\)"/\1/' | grep -v '^$')
{
    echo '{ global:'
    printf '    %s;\n' $symbols
    echo '  local: *; };'
} >"$2"
printf -- '--require-defined=%s\n' $symbols >"$3"
