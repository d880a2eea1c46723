#include "config/document.hpp"

#include <yaml-cpp/eventhandler.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

namespace semel::app {
namespace {

constexpr int depth_max = 100;
constexpr int values_max = 100'000;

Mistake only(ErrorCode code, const YAML::Mark& mark, std::string message) {
  Mistake mistake{.code = code, .line = 0, .column = 0, .path = "", .message = std::move(message)};
  if (!mark.is_null()) {
    mistake.line = mark.line + 1;
    mistake.column = mark.column + 1;
  }
  return mistake;
}

/// Reads along without keeping anything. yaml-cpp finds documents without end in some texts that are no YAML.
class Survey final : public YAML::EventHandler {
 public:
  /// What keeps `text` from being made into a tree; nothing where nothing does.
  static std::optional<Mistake> of(const std::string& text) {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    Survey survey;
    while (!survey.mistake_ && parser.HandleNextDocument(survey)) {
    }
    return survey.mistake_;
  }

  void OnDocumentStart(const YAML::Mark&) override { ++documents_; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { count(mark); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { count(mark); }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t, const std::string&) override {
    count(mark);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    count(mark);
  }
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    count(mark);
  }
  void OnMapEnd() override {}

 private:
  void count(const YAML::Mark& mark) {
    if (mistake_) return;
    if (values_ == 0) begin_ = mark.pos;
    if (documents_ > 1 && mark.pos == begin_)  // the same one again: it does not get past this character
      mistake_ = only(ErrorCode::config_syntax, mark, "not YAML: no value begins with this character");
    else if (documents_ > 1)
      mistake_ = only(ErrorCode::config_syntax, mark, "one document only, but \"---\" begins another");
    else if (++values_ > values_max)
      mistake_ = only(ErrorCode::config_syntax, mark, "too large: more than " + std::to_string(values_max) + " values");
  }

  int documents_ = 0;
  int values_ = 0;
  int begin_ = 0;  ///< of the first value
  std::optional<Mistake> mistake_;
};

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
    if (auto mistake = Survey::of(text)) return {*std::move(mistake)};
    const auto document = YAML::Load(text);
    if (!document || document.IsNull())
      return {only(ErrorCode::config_syntax, YAML::Mark::null_mark(), "the file is empty")};
    if (int budget = values_max; !is_bounded(document, depth_max, budget)) {
      return {only(ErrorCode::config_syntax, document.Mark(),
                   "too large or too deep; an alias (*name) may stand for what contains it")};
    }
    return read(document);
  } catch (const YAML::Exception& problem) {
    return {only(ErrorCode::config_syntax, problem.mark, "not YAML: " + problem.msg)};
  }
}

}  // namespace semel::app
