#include "config/document.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

namespace semel::app {
namespace {

constexpr int depth_max = 100;
constexpr int values_max = 100'000;

/// False for a tree that aliases make endless, or so large that walking it would take forever. Takes `budget` down by
/// the number of values met.
bool is_bounded(const YAML::Node& node, int depth, int& budget) {
  if (depth == 0 || --budget < 0) return false;
  if (!node.IsMap() && !node.IsSequence()) return true;
  for (const auto& entry : node) {
    if (node.IsSequence() && !is_bounded(entry, depth - 1, budget)) return false;
    if (node.IsMap() && !(is_bounded(entry.first, depth - 1, budget) && is_bounded(entry.second, depth - 1, budget)))
      return false;
  }
  return true;
}

Mistake only(ErrorCode code, const YAML::Mark& mark, std::string message) {
  Mistake mistake{.code = code, .line = 0, .column = 0, .path = "", .message = std::move(message)};
  if (!mark.is_null()) {
    mistake.line = mark.line + 1;
    mistake.column = mark.column + 1;
  }
  return mistake;
}

}  // namespace

std::variant<std::string, Mistake> text_of_file(const std::string& file) {
  errno = 0;
  std::ifstream input(file, std::ios::binary);
  std::stringstream text;
  text << input.rdbuf();
  if (input.is_open() && !input.bad() && !(text.fail() && errno != 0)) return text.str();
  return only(ErrorCode::config_syntax, YAML::Mark::null_mark(),
              std::string("cannot be read: ") + std::strerror(errno));
}

std::vector<Mistake> read_document(const std::string& text,
                                   const std::function<std::vector<Mistake>(const YAML::Node&)>& read) {
  try {
    const auto documents = YAML::LoadAll(text);
    if (documents.empty() || documents.front().IsNull())
      return {only(ErrorCode::config_syntax, YAML::Mark::null_mark(), "the file is empty")};
    if (documents.size() > 1) {
      return {only(ErrorCode::config_syntax, documents[1].Mark(), "one document only, but \"---\" begins another")};
    }
    if (int budget = values_max; !is_bounded(documents.front(), depth_max, budget)) {
      return {only(ErrorCode::config_syntax, documents.front().Mark(),
                   "too large or too deep; an alias (*name) may stand for what contains it")};
    }
    return read(documents.front());
  } catch (const YAML::Exception& problem) {
    return {only(ErrorCode::config_syntax, problem.mark, "not YAML: " + problem.msg)};
  }
}

}  // namespace semel::app
