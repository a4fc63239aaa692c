#!/bin/sh
# Usage: make_exports.sh TABLE MAP OPTIONS. TABLE is preprocessed: `export "symbol"`, any number a line. Writes the
# version script and the linker's options.
set -eu
symbols() {
    grep -o 'export "[^"]\+"' "$1" | sed 's/export "\(.*\)"/\1/'
}
{
    echo '{ global:'
    symbols "$1" | sed 's/.*/    &;/'
    echo '  local: *; };'
} >"$2"
symbols "$1" | sed 's/^/--require-defined=/' >"$3"
