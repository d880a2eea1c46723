#include <semel/source.hpp>

namespace semel {

void Doorbell::ring() {
  {
    const std::lock_guard lock(mutex_);
    ringing_ = true;
  }
  rung_.notify_all();
}

void Doorbell::wait(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  rung_.wait_for(lock, timeout, [this] { return ringing_; });
  ringing_ = false;
}

bool Doorbell::is_ringing() const {
  const std::lock_guard lock(mutex_);
  return ringing_;
}

}  // namespace semel
