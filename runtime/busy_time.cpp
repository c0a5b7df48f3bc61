#include "runtime/busy_time.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace sinter::runtime {

std::vector<double> busy_microseconds(std::span<const Interval> intervals) {
  std::vector<size_t> by_end(intervals.size());
  std::iota(by_end.begin(), by_end.end(), size_t{0});
  std::ranges::stable_sort(by_end, {}, [&](size_t i) { return intervals[i].end; });
  std::vector<double> busy(intervals.size(), 0);
  std::unordered_map<uint32_t, uint64_t> ended;  // by stream: when the last one had
  for (const size_t i : by_end) {
    const Interval& interval = intervals[i];
    uint64_t& last = ended[interval.stream];
    busy[i] = static_cast<double>(interval.end - std::max(interval.start, last)) / 1e3;
    last = interval.end;
  }
  return busy;
}

}  // namespace sinter::runtime
