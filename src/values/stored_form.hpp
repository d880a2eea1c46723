// How keys, answers, attributes and what belongs to an intent are written in a store. Every form starts with a version
// byte, so that a later release can change it and still read this one; fields are length-prefixed, so any bytes
// survive. (A Fingerprint's bytes are their own stored form.)
#pragma once

#include <array>
#include <compare>
#include <optional>
#include <semel/answer.hpp>
#include <semel/delivery.hpp>
#include <semel/intent.hpp>
#include <semel/key.hpp>
#include <semel/ledger.hpp>
#include <semel/result.hpp>
#include <string>
#include <string_view>

namespace semel {

/// Errors of every reader here: store_damaged, remedy ask_operator, for bytes that the writer beside it never wrote.

std::string stored_key(const Key& key);
Result<Key> read_key(std::string_view stored);

/// Finds a record by sixteen bytes of SHA-256 over (version, handler, principal, key). It narrows a search; that the
/// record is the one meant is decided by the whole id (promise 4 of the store).
struct RecordDigest {
  std::array<char, 16> bytes{};
  std::string_view view() const { return {bytes.data(), bytes.size()}; }
  auto operator<=>(const RecordDigest&) const = default;
};
RecordDigest record_digest(const Scope& scope, const Key& key);

std::string encode_answer(const Answer& answer);
Result<Answer> decode_answer(std::string_view stored);

/// What a record's answer becomes: nothing where it stays as it is; no bytes, which no answer has, where it is dropped.
std::optional<std::string> stored_answer(const RecordUpdate& update);

std::string encode_attributes(const Attributes& attributes);
Result<Attributes> decode_attributes(std::string_view stored);

/// The 16 bytes of an intent's or a publication's id. Errors: bad_value for anything but 32 lower-case hexadecimal
/// digits.
Result<std::string> stored_id(std::string_view hex);
std::string read_id(std::string_view stored);

std::string encode_message(const StoredMessage& message);
Result<StoredMessage> decode_message(std::string_view stored);

std::string encode_outcome(const CallOutcome& outcome);
Result<CallOutcome> decode_outcome(std::string_view stored);

std::string encode_compensation(const Compensation& compensation);
Result<Compensation> decode_compensation(std::string_view stored);

}  // namespace semel
