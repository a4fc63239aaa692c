// Asks DuckDB (npm's @duckdb/node-api) the queries sql.N, of tables in Parquet: NAME.TABLE.parquet, of old, new and app. The
// answers are duck.N. duckdb_queries.js [N...]: only these.
const { DuckDBInstance } = require('@duckdb/node-api');
const fs = require('fs');

(async () => {
  const c = await (await DuckDBInstance.create(':memory:')).connect();
  let numbers = process.argv.slice(2).map(Number);
  for (let i = 1; !process.argv[2] && fs.existsSync(`sql.${i}`); i++) numbers.push(i);
  for (const i of numbers) {
    for (const t of ['events', 'blocks', 'sites', 'processes', 'samples']) {
      await c.run(`CREATE OR REPLACE VIEW ${t} AS ` + (i === 2
        ? `SELECT 'old.ht' AS file, * FROM 'old.${t}.parquet' UNION ALL SELECT 'new.ht', * FROM 'new.${t}.parquet'`
        : `SELECT * FROM 'app.${t}.parquet'`));
    }
    // As allocators have it: a step is a fourth of the power of two below the size.
    await c.run(`CREATE OR REPLACE MACRO size_class(s) AS CASE WHEN s <= 8 THEN 8 WHEN s <= 128 THEN ((s + 15) // 16) * 16
      ELSE ((s - 1) // (2 ** (floor(log2(s - 1)) - 2))::BIGINT + 1) * (2 ** (floor(log2(s - 1)) - 2))::BIGINT END`);
    const rows = (await c.runAndReadAll(fs.readFileSync(`sql.${i}`, 'utf8'))).getRowsJson();
    fs.writeFileSync(`duck.${i}`, JSON.stringify(rows));
  }
})().catch(e => { console.error(e.message); process.exit(1); });
