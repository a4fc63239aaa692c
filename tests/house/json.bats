load ../helper

schemas=$HEAPTAPE_SOURCE/docs/reference/json

# check_copy STATUS TEXT: checks the schemas in ./copy.
check_copy() {
  run "$HEAPTAPE_SOURCE/tools/check-json" --schemas copy
  echo "$output"
  [ "$status" -eq "$1" ]
  has "$output" "$2"
}

needs_jsonschema() {
  run "$HEAPTAPE_SOURCE/tools/check-json"
  [ "$status" -ne 77 ] || skip "no python3-jsonschema"
}

@test "the schemas are valid, their keys described, their objects closed" {
  needs_jsonschema
  echo "$output"
  [ "$status" -eq 0 ]
  [ "$output" = "$(find "$schemas" -name '*.schema.json' | wc -l) schemas" ]
}

@test "a planted key without a description, an open object and another version are found" {
  needs_jsonschema
  mkdir copy
  sed 's/"description": "name for option[^"]*"/"description": ""/' "$schemas/allocators.schema.json" >copy/allocators.schema.json
  check_copy 1 "key 'name' has no description"
  sed 's/"additionalProperties": false,//' "$schemas/allocators.schema.json" >copy/allocators.schema.json
  check_copy 1 "the object is open"
  sed 's/"const": 2,/"const": 1,/' "$schemas/allocators.schema.json" >copy/allocators.schema.json
  check_copy 1 "schema_version is not 2"
  sed 's|#/$defs/allocator|other.schema.json#/$defs/x|' "$schemas/allocators.schema.json" >copy/allocators.schema.json
  check_copy 1 "refers to what is not there"
  rm copy/*
  check_copy 1 "0 schemas"
}

# check-json decides common keywords of array items itself.
@test "each kind of wrong value in a list is found" {
  needs_jsonschema
  mkdir copy
  cat >copy/list.schema.json <<'END'
{"$defs": {"item": {"type": "object", "additionalProperties": false, "required": ["n"],
    "properties": {"n": {"type": "integer", "minimum": 1, "maximum": 9}, "s": {"type": ["string", "null"], "pattern": "^a"},
      "e": {"enum": ["x", "y"]}, "b": {"type": "boolean"}, "l": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"const": 3}}}}},
  "type": "object", "properties": {"items": {"type": "array", "items": {"$ref": "#/$defs/item"}}}}
END
  for right in '{"n": 1}' '{"n": 9, "s": "ab", "e": "y", "b": true, "l": [3, 3]}' '{"n": 5, "s": null, "l": [3]}'; do
    echo "{\"items\": [$right]}" >document
    "$HEAPTAPE_SOURCE/tools/check-json" --schemas copy list document
  done
  for wrong in '{}' '{"n": 0}' '{"n": 10}' '{"n": "1"}' '{"n": true}' '{"n": 1, "s": "b"}' '{"n": 1, "s": 2}' '{"n": 1, "e": "z"}' \
    '{"n": 1, "b": 0}' '{"n": 1, "l": []}' '{"n": 1, "l": [3, 3, 3]}' '{"n": 1, "l": [4]}' '{"n": 1, "x": 1}' '5'; do
    echo "{\"items\": [{\"n\": 1}, $wrong]}" >document
    run "$HEAPTAPE_SOURCE/tools/check-json" --schemas copy list document
    [ "$status" -eq 1 ] || { echo "not found: $wrong" && false; }
  done
}

@test "combined schemas: right documents need no jsonschema, and each kind of wrong document is found" {
  needs_jsonschema
  mkdir copy without
  cat >copy/kinds.schema.json <<'END'
{"$defs": {"x": {"properties": {"n": {"type": "integer"}}}}, "type": "object", "additionalProperties": false, "properties": {
  "all": {"type": "object", "allOf": [{"$ref": "#/$defs/x"}], "properties": {"m": {"type": "integer"}}, "unevaluatedProperties": false},
  "one": {"oneOf": [{"type": "null"}, {"type": "string"}]},
  "if": {"type": "object", "if": {"properties": {"k": {"const": "a"}}}, "then": {"required": ["v"]}, "else": {"required": ["w"]}},
  "first": {"type": "array", "prefixItems": [{"type": "integer"}], "items": {"type": "string"}},
  "pattern": {"type": "object", "patternProperties": {"^a": {"type": "integer"}}, "additionalProperties": {"type": "string"}},
  "needs": {"type": "object", "dependentRequired": {"p": ["q"]}, "dependentSchemas": {"r": {"required": ["s"]}}}}}
END
  cat >right <<'END'
{"all": {"n": 1, "m": 2}} {"one": null} {"one": "x"} {"if": {"k": "a", "v": 1}} {"if": {"k": "b", "w": 1}} {"first": [1, "a"]}
{"first": []} {"pattern": {"a": 1, "b": "x"}} {"needs": {"p": 1, "q": 1, "r": 1, "s": 1}} {"needs": {}}
END
  cat >wrong <<'END'
{"all": {"n": "1"}} {"all": {"o": 1}} {"one": 1} {"if": {"k": "a"}} {"if": {"k": "b", "v": 1}} {"first": ["a"]} {"first": [1, 2]}
{"pattern": {"a": "x"}} {"pattern": {"b": 1}} {"needs": {"p": 1}} {"needs": {"r": 1}}
END
  echo 'raise SystemExit("imported")' >without/jsonschema.py
  PYTHONPATH=without "$HEAPTAPE_SOURCE/tools/check-json" --schemas copy kinds right
  run "$HEAPTAPE_SOURCE/tools/check-json" --schemas copy kinds wrong
  echo "$output"
  [ "$status" -eq 1 ]
  # The first document has two messages.
  [ "$(grep -c '(schema kinds)' <<<"$output")" -eq 12 ]
}

@test "the schema of dump has every kind and member of the table of events" {
  table=$HEAPTAPE_SOURCE/src/trace/event/event_table.h
  jq -r '.. | objects | select(has("kind")) | .kind.enum[]?' "$schemas/dump.schema.json" | sort -u >kinds
  jq -r '.. | objects | .properties? | select(.) | keys[]' "$schemas/dump.schema.json" | sort -u >members
  sed -n '/define HT_NOTE_TABLE/q; s/^ *X( *[0-9]*, *[A-Z0-9_]*, *"\([^"]*\)".*/\1/p' "$table" | sort >want
  [ "$(wc -l <want)" -gt 50 ]
  diff kinds want
  {
    grep -o 'HT_\(NAMED\|SIGNED\)("[^"]*")' "$table" | sed 's/.*("\(.*\)")/\1/'
    sed -n '/define HT_NOTE_TABLE/,$s/^ *X( *[0-9]*, *[A-Z]*, *"\([^"]*\)".*/\1/p' "$table"
  } | sort -u >want
  [ "$(wc -l <want)" -gt 10 ]
  [ "$(comm -13 members want)" = "" ]
}

@test "an unknown key, a missing key and invalid JSON are found" {
  needs_jsonschema
  heaptape allocators --json
  echo "$output" >good
  echo "$output" | sed '0,/"name"/s//"nom"/' >bad
  head -c 100 good >cut
  run "$HEAPTAPE_SOURCE/tools/check-json" allocators good
  [ "$status" -eq 0 ]
  run "$HEAPTAPE_SOURCE/tools/check-json" allocators bad
  [ "$status" -eq 1 ]
  has "$output" "'nom' was unexpected"
  has "$output" "'name' is a required property"
  run "$HEAPTAPE_SOURCE/tools/check-json" allocators cut
  [ "$status" -eq 1 ]
  has "$output" "is no JSON"
  run "$HEAPTAPE_SOURCE/tools/check-json" nonsense good
  [ "$status" -eq 1 ]
  has "$output" "nonsense: has no schema"
}

@test "JSON output of tests is kept and validated" {
  needs_jsonschema
  [ -z "$HEAPTAPE_SANITIZED" ] || skip "only in plain builds"
  export BATS_FILE_TMPDIR=$PWD
  heaptape allocators --json
  [ "$(ls json)" != "" ]
  check_json
  sed -i '0,/"name"/s//"nom"/' json/*
  run check_json
  [ "$status" -eq 1 ]
  has "$output" "'nom' was unexpected"
}
