#!/usr/bin/env bash
# Plants one mistake after the other in a page with figures; tools/figures.py must find each of them.
set -euo pipefail
python=$1 figures=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

page() { # TABLE'S FIRST FIGURE, INLINE FIGURE, FIELD
  cat >"$folder/page.md" <<TEXT
<!-- figures {"files": ["a.json"], "rows": [{"model": "net"}, {"model": "net", "freeze": true, "files": ["b.json"]}],
  "columns": [["model", "{model}"], ["eager", "{default.eager_ms:#.3g}"], ["ms", "{default.${3:-steady_ms}:.3g}"],
              ["cold, MiB", "{default.cold_s - default.eager_cold_s:.1f} s / {default.device_bytes / MiB:.0f}"]], "best": [1, 2]} -->

| model | eager | ms | cold, MiB |
|---|---|---|---|
| net | $1 | **0.5** | -0.1 s / 3 |
| net | 2.00 | **0.25** | 1.0 s / 1 |

It takes <!-- figure {"files": ["a.json"], "row": {"model": "net"}, "cell": "{default.steady_ms}"} -->$2<!-- /figure --> ms.
TEXT
}

row() { # STEADY, COLD, BYTES, FREEZE
  echo "{\"model\": \"net\", \"mode\": \"default\", \"eager_ms\": 2, \"steady_ms\": $1, \"cold_s\": $2," \
    "\"eager_cold_s\": 0.2, \"device_bytes\": $3, \"freeze\": $4}"
}
echo "{\"commit\": \"1a\", \"rows\": [$(row 0.25 9 1 true), $(row 0.5 0.1 3145728 false)]}" >"$folder/a.json"
echo "{\"rows\": [$(row 0.25 1.2 1048576 true)]}" >"$folder/b.json"

expect() { # EXPECTED: a part of the one line that is said; nothing: all is well
  local said
  if said=$("$python" "$figures" "$folder/page.md" 2>&1); then said=; fi
  if [[ -z $1 && -n $said || $said != *"$1"* || $(grep -c . <<<"$said") -gt 1 ]]; then
    echo "expected '$1', found: $said"
    failed=1
  fi
}

page 2.00 0.5
expect ''
page 2.01 0.5
expect "'| net | 2.01 | **0.5** | -0.1 s / 3 |' should be '| net | 2.00 |"
page 2.00 0.6
expect "should be"
page 2.00 0.5 speed
expect "no 'speed' of mode 'default'"
page 2.00 0.5
printf '\n| net | 3.14 |\n' >>"$folder/page.md"
expect 'figures without a file'
page 2.00 0.5
sed -i 's/{"rows"/{"commit": "2b", "rows"/' "$folder/b.json"
expect 'figures of several commits: 1a, 2b'
sed -i 's/{"files": \["a.json"\], "rows"/{"apart": true, "files": ["a.json"], "rows"/' "$folder/page.md"
expect ''
sed -i 's/"files": \["b.json"\]/"files": ["b.json", "a.json"]/' "$folder/page.md"
expect 'figures of several commits: 1a, 2b'
sed -i 's/"commit": "2b", //' "$folder/b.json"
page 7.00 0.9
"$python" "$figures" "$folder/page.md" --write
expect ''
grep -q '| net | 2.00 | \*\*0.5\*\* |' "$folder/page.md" || { echo "not written"; failed=1; }
sed 's/steady_ms": 0.5/steady_ms": 0.125/' "$folder/a.json" >"$folder/c.json"
sed -i 's/"files": \["b.json"\]/"label": ""/' "$folder/page.md"
"$python" "$figures" "$folder/page.md" --write --file c.json
expect ''
grep -q '"files": \["c.json"\]' "$folder/page.md" && grep -q '| net | 2.00 | \*\*0.125\*\* |' "$folder/page.md" ||
  { echo "not taken from another file"; failed=1; }

cat >"$folder/page.md" <<'TEXT'
<!-- figures {"training": ["reduce-overhead", "rival default"], "files": ["d.json"],
  "rows": [{"label": "Net", "model": "net", "train": "sgd"}]} -->

TEXT
cat >"$folder/d.json" <<'TEXT'
{"rows": [{"model": "net", "mode": "reduce-overhead", "train": "sgd", "eager_ms": 8, "steady_ms": 4, "cold_s": 1.5,
  "kernel_table": [{"us": 1500}, {"us": 250}], "allocated_bytes": 3145728, "eager_allocated_bytes": 4194304,
  "unsynchronised_ms_wrong": 0.5, "losses": {"largest_difference": 0.002}},
 {"model": "net", "mode": "rival default", "train": "sgd", "eager_ms": 10, "steady_ms": 5, "losses": null}]}
TEXT
"$python" "$figures" "$folder/page.md" --write || failed=1
for line in '| Net | eager | 8.00 | 1.00 | – | – | 4 | – | – |' \
  '| Net | reduce-overhead | 4.00 | 2.00 | 1.75 | 0.500 | 3 | 1.5 | 2.0e-03 |' \
  '| Net | eager beside rival | 10.0 | 0.80 | – | – | – | – | – |' \
  '| Net | rival default | 5.00 | 1.60 | – | – | – | – | – |'; do
  grep -qF "$line" "$folder/page.md" || { echo "not in the table of training steps: $line"; failed=1; }
done
expect ''
sed -i 's/| 0.500 |/| 0.400 |/' "$folder/page.md"
expect '| 0.400 |'
exit $failed
