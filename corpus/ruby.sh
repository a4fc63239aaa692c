# Ruby: strings, hashes, arrays and structs.
programs=ruby3.1
packages=ruby3.1
licence='Ruby OR BSD-2-Clause'

run() {
  cat >input.rb <<'END'
Row = Struct.new(:id, :name, :tags)
n = ARGV[0].to_i
random = Random.new(1)
4.times do
  rows = (0...n).map { |i| Row.new(i, "a name that does not fit into an object: #{random.rand(1 << 40)}", [i % 3, i % 7, i % 31, i]) }
  groups = rows.group_by { |row| row.name[-2..] }
  text = groups.map { |key, list| "#{key}: #{list.map(&:name).join(', ')}" }.join("\n")
  words = text.scan(/\d{3,}/).tally
  rows.sort_by!(&:name)
  lines = text.lines.map(&:upcase)
  puts [groups.size, words.size, lines.size].inspect
end
END
  record ruby3.1 --disable-gems input.rb $((60000 * size / 100 + 10))
}
