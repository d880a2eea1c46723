// Random numbers that are the same on every machine: a run is a function of its seed.
#pragma once

#include <cstdint>
#include <vector>

namespace semel::sim {

/// SplitMix64 (Steele, Lea, Flood 2014). The standard library's distributions differ between implementations.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15u;
    auto mixed = (state_ ^ (state_ >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 31);
  }

  /// 0 to `count` - 1; `count` above 0.
  std::uint64_t below(std::uint64_t count) { return next() % count; }
  /// `first` to `last`.
  std::int64_t between(std::int64_t first, std::int64_t last) {
    return first + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(last - first) + 1));
  }
  bool one_in(std::uint64_t count) { return below(count) == 0; }
  /// 1 to `last`, small numbers as likely as large ones of twice their size.
  std::int64_t spread(std::int64_t last) {
    std::int64_t bound = 1;
    while (bound < last && !one_in(6)) bound *= 2;
    return between(1, bound < last ? bound : last);
  }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[below(from.size())];
  }

  /// An independent stream.
  Random split() { return Random(next() ^ 0xd1b54a32d192ed03u); }

 private:
  std::uint64_t state_;
};

}  // namespace semel::sim
