#include "tests/llvm/joins.h"

#include <fmt/format.h>

namespace sinter::test {
namespace {

constexpr JoinBody bodies[] = {
    {"boundaries at multiples of vectors",
     R"(graph @g on {D} (%a: {T}[3,16], %b: {T}[3,32], %c: {T}[3,16]) -> (%y) {{
       %y = join %a, %b, %c over 1 : {T}[3,64]
     }})"},
    {"boundaries at halves of vectors",
     R"(graph @g on {D} (%a: {T}[3,12], %b: {T}[3,4]) -> (%y) {{ %y = join %a, %b over 1 : {T}[3,16] }})"},
    {"odd boundaries",
     R"(graph @g on {D} (%a: {T}[5,3], %b: {T}[5,13]) -> (%y) {{ %y = join %a, %b over 1 : {T}[5,16] }})"},
    {"odd boundaries in one loop",
     R"(graph @g on {D} (%a: {T}[37], %b: {T}[64], %c: {T}[1]) -> (%y) {{ %y = join %a, %b, %c over 0 : {T}[102] }})"},
    {"channels of images whose pixels fill no vector",
     R"(graph @g on {D} (%a: {T}[2,8,7,7], %b: {T}[2,16,7,7]) -> (%y) {{
       %y = join %a, %b over 1 : {T}[2,24,7,7]
     }})"},
    {"channels of images that are channels-last",
     R"(graph @g on {D} (%a: {T}[2,8,5,5]{{200,1,40,8}}, %b: {T}[2,24,5,5]{{600,1,120,24}}) -> (%y) {{
       %y = join %a, %b over 1 : {T}[2,32,5,5]{{800,1,160,32}}
     }})"},
    {"many operands, and one of them again",
     R"(graph @g on {D} (%a: {T}[3,16], %b: {T}[3,16], %c: {T}[3,32], %d: {T}[3,16], %e: {T}[3,48],
                            %f: {T}[3,16], %h: {T}[3,16], %i: {T}[3,16], %k: {T}[3,16]) -> (%y) {{
       %j = join %a, %b, %c, %d, %e, %f, %h, %i, %k, %a over 1 : {T}[3,208]
       %y = maximum %j, 1 : {T}[3,208]
     }})"},
    {"many operands with odd boundaries",
     R"(graph @g on {D} (%a: {T}[3], %b: {T}[5], %c: {T}[2], %d: {T}[7], %e: {T}[1],
                            %f: {T}[11], %h: {T}[4], %i: {T}[6], %k: {T}[3]) -> (%y) {{
       %y = join %a, %b, %c, %d, %e, %f, %h, %i, %k over 0 : {T}[42]
     }})"},
    {"images of two layouts",
     R"(graph @g on {D} (%a: {T}[2,8,5,5], %b: {T}[2,24,5,5]{{600,1,120,24}}) -> (%y) {{
       %y = join %a, %b over 1 : {T}[2,32,5,5]{{800,1,160,32}}
     }})"},
    {"images of two layouts in squares",
     R"(graph @g on {D} (%a: {T}[2,24,8,20], %b: {T}[2,40,8,20]{{6400,1,800,40}}) -> (%y) {{
       %n = maximum %a, 0 : {T}[2,24,8,20]
       %y = join %n, %b over 1 : {T}[2,64,8,20]{{10240,1,1280,64}}
     }})"},
    {"a roll that is transposed",
     R"(graph @g on {D} (%x: {T}[64,96]) -> (%y) {{
       %a = view %x + 61 : {T}[64,35]{{96,1}}
       %b = view %x + 0 : {T}[64,61]{{96,1}}
       %r = join %a, %b over 1 : {T}[64,96]
       %t = view %r + 0 : {T}[96,64]{{1,96}}
       %y = maximum %t, 0 : {T}[96,64]
     }})"},
    {"a repeated operand beside a transposed one",
     R"(graph @g on {D} (%a: {T}[4,8]{{1,0}}, %b: {T}[4,8]{{1,4}}) -> (%y) {{ %y = join %a, %b over 1 : {T}[4,16] }})"},
    {"padding of two dims by one",
     R"(graph @g on {D} (%x: {T}[2,6,14]) -> (%y) {{
       %c = cast 1 : {T}[2,6,1]
       %w = join %c, %x, %c over 2 : {T}[2,6,16]
       %r = cast 1 : {T}[2,1,16]
       %y = join %r, %w, %r over 1 : {T}[2,8,16]
     }})"},
    {"padding by a vector",
     R"(graph @g on {D} (%x: {T}[4,48]) -> (%y) {{
       %c = cast 1 : {T}[4,16]
       %y = join %x, %c over 1 : {T}[4,64]
     }})"},
    {"a roll over two dims",
     R"(graph @g on {D} (%x: {T}[7,16,8]) -> (%y) {{
       %a = view %x + 384 : {T}[4,16,8]
       %b = view %x + 0 : {T}[3,16,8]
       %r = join %a, %b over 0 : {T}[7,16,8]
       %c = view %r + 104 : {T}[7,3,8]{{128,8,1}}
       %d = view %r + 0 : {T}[7,13,8]{{128,8,1}}
       %y = join %c, %d over 1 : {T}[7,16,8]
     }})"},
    {"a roll along the innermost dim",
     R"(graph @g on {D} (%x: {T}[3,32]) -> (%y) {{
       %a = view %x + 27 : {T}[3,5]{{32,1}}
       %b = view %x + 0 : {T}[3,27]{{32,1}}
       %y = join %a, %b over 1 : {T}[3,32]
     }})"},
    {"views at odd offsets",
     R"(graph @g on {D} (%x: {T}[3,40], %z: {T}[65]) -> (%y) {{
       %a = view %x + 3 : {T}[3,16]{{40,1}}
       %b = view %z + 17 : {T}[3,16]{{16,1}}
       %y = join %a, %b over 1 : {T}[3,32]
     }})"},
    {"a stack",
     R"(graph @g on {D} (%a: {T}[6,5], %b: {T}[6,5]) -> (%y) {{
       %u = view %a + 0 : {T}[6,5,1]
       %v = view %b + 0 : {T}[6,5,1]
       %y = join %u, %v over 2 : {T}[6,5,2]
     }})"},
    {"computed operands, of which one is needed whole too",
     R"(graph @g on {D} (%a: {T}[6,24], %b: {T}[6,8], %m: {T}[24]) -> (%y, %t) {{
       %s = maximum %a, %m : {T}[6,24]
       %n = maximum %b, 0 : {T}[6,8]
       %z = view %s + 3 : {T}[6,16]{{24,1}}
       %y = join %z, %n over 1 : {T}[6,24]
       %t = maximum %s, %y : {T}[6,24]
     }})"},
    {"a view of a join",
     R"(graph @g on {D} (%a: {T}[6,8], %b: {T}[6,4]) -> (%y) {{
       %j = join %a, %b over 1 : {T}[6,12]
       %v = view %j + 0 : {T}[8,9]
       %y = maximum %v, 0 : {T}[8,9]
     }})"},
    {"a join within a join",
     R"(graph @g on {D} (%a: {T}[4,8], %b: {T}[4,8], %c: {T}[4,16]) -> (%y) {{
       %j = join %a, %b over 1 : {T}[4,16]
       %y = join %c, %j, %c over 1 : {T}[4,48]
     }})"},
};

}  // namespace

std::span<const JoinBody> join_bodies() { return bodies; }

std::string text_of(const JoinBody& body, std::string_view dtype, std::string_view device) {
  return fmt::format(fmt::runtime(body.text), fmt::arg("T", dtype), fmt::arg("D", device));
}

}  // namespace sinter::test
