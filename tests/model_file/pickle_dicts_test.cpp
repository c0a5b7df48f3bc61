#include "frontend/model_file/pickle_dicts.h"

#include <gtest/gtest.h>

namespace sinter::test {
namespace {

using frontend::with_plain_dicts;
using std::string_literals::operator""s;

// Opcodes as text where they are letters. NEWOBJ takes the top of LibTorch's stack off, '}' is an empty dict.
const std::string proto = "\x80\x02";
const std::string type = "ccollections\nOrderedDict\n";
const std::string call = ")R";
const std::string drop = "\x81";
const std::string dict = drop + "}";

/// The same opcodes between the protocol's number and the end, rewritten.
void expect_rewritten(const std::string& before, const std::string& after) {
  EXPECT_EQ(with_plain_dicts(proto + before + "."), proto + after + ".");
}
void expect_unchanged(const std::string& pickle) { EXPECT_EQ(with_plain_dicts(pickle), pickle); }

TEST(PickleDicts, stand_where_an_ordered_dict_was_made) {
  expect_rewritten(type + call, type + dict);
  expect_rewritten(type + "q\x00"s + call + "q\x01", type + "q\x00"s + dict + "q\x01");
  expect_rewritten(type + "r\x00\x01\x00\x00"s + call, type + "r\x00\x01\x00\x00"s + dict);
}

TEST(PickleDicts, stand_in_each_other_where_the_type_comes_back_through_the_memo) {
  const std::string key = "X\x01\0\0\0a"s;
  expect_rewritten(type + "q\x00"s + call + "q\x01(" + key + "h\x00"s + call + "u",
                   type + "q\x00"s + dict + "q\x01(" + key + "h\x00"s + dict + "u");
  expect_rewritten(type + "r\x07\x01\x00\x00"s + call + key + "j\x07\x01\x00\x00"s + call + "s",
                   type + "r\x07\x01\x00\x00"s + dict + key + "j\x07\x01\x00\x00"s + dict + "s");
}

TEST(PickleDicts, lose_their_attributes_and_other_objects_do_not) {
  const std::string state = "}X\x09\0\0\0_metadata}s"s;
  expect_rewritten(type + call + state + "b", type + dict + state + drop);
  expect_rewritten(type + call + "q\x05" + "h\x05" + state + "b\x86",
                   type + dict + "q\x05" + "h\x05" + state + drop + "\x86");
  expect_rewritten("ca\nB\n)R" + state + "b", "ca\nB\n)R" + state + "b");
  expect_rewritten(type + state + "b", type + state + "b");
}

TEST(PickleDicts, are_left_alone_where_an_ordered_dict_has_an_argument_or_the_type_is_another) {
  expect_rewritten(type + "]\x85R", type + "]\x85R");
  expect_rewritten(type + ")q\x01R", type + ")q\x01R");
  expect_rewritten("ccollections\nCounter\n" + call, "ccollections\nCounter\n" + call);
  expect_rewritten("cmine\nOrderedDict\n" + call, "cmine\nOrderedDict\n" + call);
}

TEST(PickleDicts, are_not_mistaken_for_bytes_of_strings_and_numbers) {
  const std::string text = type + call + "b.";
  const std::string length(1, static_cast<char>(text.size()));
  for (const std::string& value :
       {"X" + length + "\0\0\0"s + text, "\x8a" + length + text, "J)R)R"s, "M)R"s, "K)"s, "G)R)R)R)R"s}) {
    expect_rewritten(value, value);
    expect_rewritten(type + call + value + "\x86", type + dict + value + "\x86");
  }
}

TEST(PickleDicts, are_not_made_in_a_stream_that_is_cut_off) {
  const std::string whole =
      proto + type + "q\x00"s + call + "(X\x01\0\0\0aM\x01\x02J\x01\x02\x03\x04h\x00)R\x85"s + "r\x09\0\0\0u}b."s;
  EXPECT_NE(with_plain_dicts(whole), whole);
  EXPECT_EQ(with_plain_dicts(whole).size(), whole.size());
  for (size_t size = 0; size < whole.size(); ++size) expect_unchanged(whole.substr(0, size));
  expect_unchanged(proto + type + call + "X\xff\xff\xff\xff.");
}

TEST(PickleDicts, are_not_made_in_a_stream_with_an_opcode_that_libtorch_does_not_know) {
  for (const std::string& unknown : {"0"s, "2"s, "\x93"s, "\xff"s, "\x00"s, "Iabc\n"s}) {
    expect_unchanged(proto + type + call + unknown + ".");
  }
}

TEST(PickleDicts, are_not_made_in_a_stream_that_takes_what_is_not_there) {
  for (const std::string& bad : {"R"s, "b"s, "\x87"s, "u"s, "t"s, "s"s, "h\x03"s, "(ss"s}) {
    expect_unchanged(proto + type + call + bad + ".");
  }
  expect_unchanged(proto + "q\x01" + type + call + ".");
  expect_unchanged(proto + "(" + type + call + "\x86u.");
}

}  // namespace
}  // namespace sinter::test
