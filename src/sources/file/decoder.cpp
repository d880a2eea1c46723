#include "sources/file/decoder.hpp"

#include <zlib.h>

#include <array>
#include <new>

namespace semel::file {

namespace {

constexpr std::string_view gzip_magic = "\x1f\x8b";
constexpr int gzip_only = 15 + 16;

Error unreadable(std::string message) { return fix_call(ErrorCode::source_unreadable, std::move(message)); }

}  // namespace

/// Any number of gzip members, one after the other; zeros after the last are padding.
struct Decoder::Gunzip {
  Gunzip() {
    if (inflateInit2(&stream, gzip_only) != Z_OK) throw std::bad_alloc();
  }
  ~Gunzip() { inflateEnd(&stream); }
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  Result<void> feed(std::string_view bytes, const Sink& sink);
  Result<void> inflate_some(const Sink& sink);
  /// Leaves the padding out and begins the next member, if one follows.
  void begin_member();

  z_stream stream{};
  bool between = false;  ///< a member has ended and the next has not begun
  std::array<char, 65'536> out;
};

Result<void> Decoder::Gunzip::feed(std::string_view bytes, const Sink& sink) {
  // zlib reads only; its interface predates const.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  do {
    if (between) begin_member();
    if (between) return {};
    if (auto inflated = inflate_some(sink); !inflated) return inflated;
    // A full buffer may mean that more is to come without more input.
  } while (stream.avail_in > 0 || (!between && stream.avail_out == 0));
  return {};
}

Result<void> Decoder::Gunzip::inflate_some(const Sink& sink) {
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int status = inflate(&stream, Z_NO_FLUSH);
  sink(std::string_view(out.data(), out.size() - stream.avail_out));
  between = status == Z_STREAM_END;
  if (between || status == Z_OK || status == Z_BUF_ERROR) return {};
  return unreadable(std::string("damaged gzip data: ") + (stream.msg ? stream.msg : zError(status)));
}

void Decoder::Gunzip::begin_member() {
  while (stream.avail_in > 0 && *stream.next_in == 0) {
    ++stream.next_in;
    --stream.avail_in;
  }
  if (stream.avail_in == 0) return;
  inflateReset(&stream);
  between = false;
}

Decoder::Decoder(Sink sink) : sink_(std::move(sink)) {}
Decoder::~Decoder() = default;

Result<void> Decoder::feed(std::string_view bytes) {
  if (!decided_) {
    head_.append(bytes);
    return head_.size() < gzip_magic.size() ? Result<void>{} : decide();
  }
  if (gunzip_) return gunzip_->feed(bytes, sink_);
  sink_(bytes);
  return {};
}

Result<void> Decoder::finish() {
  if (!decided_)
    if (auto passed = decide(); !passed) return passed;
  if (gunzip_ && !gunzip_->between) return unreadable("it ends in the middle of its gzip data");
  return {};
}

Result<void> Decoder::decide() {
  decided_ = true;
  if (head_.starts_with(gzip_magic)) gunzip_ = std::make_unique<Gunzip>();
  return feed(std::exchange(head_, {}));
}

}  // namespace semel::file
