#!/usr/bin/env bash
# Checks an installed tree: what libsinter.so shows, and which headers there are.
#   check-installed.sh PREFIX
set -euo pipefail
prefix=$1
library=$(find "$prefix" -name libsinter.so)

# Internal parts of the library, and everything that is not Sinter's.
shown=$(nm -D --defined-only -C "$library" | cut -d' ' -f3-)
leaked=$(grep -vE '^(typeinfo (name )?for |vtable for )?sinter::|^_(init|fini|edata|end)$|^__bss_start$' <<<"$shown" || true)
inner=$(grep -E '^[^(]*sinter::(frontend|runtime|ir|passes|kernel|codegen|bench|command)::' <<<"$shown" || true)
[ -z "$leaked$inner" ] || { printf 'shown, but not public:\n%s\n%s\n' "$leaked" "$inner" >&2; exit 1; }
grep -q '^sinter::detail::make_' <<<"$shown" || { echo "nothing public is shown" >&2; exit 1; }
[ "$(find "$prefix" -name 'libsinter*.so' | wc -l)" = 1 ] || { echo "more than one library is installed" >&2; exit 1; }

# Every header lies under include/sinter, once, and names only its own. Types by their whole names: a public one and one
# of sinter::detail may share the last word.
types() { # HEADER
  awk '/^namespace .*\{$/ { space = $2 } /^(class|struct|enum class) [A-Z][A-Za-z]* .*\{$/ { print space "::" ($1 == "enum" ? $3 : $2) }' "$1"
}
[ "$(ls "$prefix/include")" = sinter ] || { echo "more than include/sinter: $(ls "$prefix/include")" >&2; exit 1; }
twice=$(find "$prefix/include" -name '*.h' | while read -r header; do types "$header"; done | sort | uniq -d)
[ -z "$twice" ] || { printf 'declared twice: %s\n' $twice >&2; exit 1; }
foreign=$(grep -rn '#include "' "$prefix/include" | grep -v '#include "sinter/' || true)
[ -z "$foreign" ] || { printf 'headers that are not installed:\n%s\n' "$foreign" >&2; exit 1; }
while read -r name; do
  [ -f "$prefix/include/$name" ] || { echo "missing: $name" >&2; exit 1; }
done < <(grep -rhoE '#include "sinter/[^"]+' "$prefix/include" | sed 's/.*"//' | sort -u)
