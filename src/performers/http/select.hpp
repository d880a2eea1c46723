// Places in a JSON body, and comparing what is there.
#pragma once

#include <optional>
#include <semel/performers/http.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"

namespace semel::http {

/// Everything that a JSON Pointer names in which "*" stands for any element or member.
std::vector<const json::Node*> select(const json::Node& root, std::string_view pointer);
/// The first of them; null where there is none.
const json::Node* select_first(const json::Node& root, std::string_view pointer);

/// A string's characters, a number as it is written, true, false; nothing for anything else.
std::optional<std::string> text_of(const json::Node* node);

/// A body that can be asked for places: JSON, or a form, whose fields are the members of one object.
class Body {
 public:
  /// `content_type` empty: JSON where it is JSON, else a form.
  Body(std::string_view bytes, std::string_view content_type);
  const json::Node* root() const { return root_.get(); }  ///< null where it is neither
  std::optional<std::string> text(std::string_view pointer) const;

 private:
  std::shared_ptr<const json::Node> root_;
};

/// Whether two texts mean the same. Decimals that are none compare as texts.
bool same(Comparison::As as, std::string_view one, std::string_view other);

std::string url_encode(std::string_view text);

}  // namespace semel::http
