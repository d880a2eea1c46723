// Tells the address sanitizer, where it is there, that a thread goes on on another stack.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define SEMEL_FIBERS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SEMEL_FIBERS_SANITIZED 1
#endif
#endif
// A compiler that only reads the code may be without the sanitizers.
#if defined(SEMEL_FIBERS_SANITIZED) && !__has_include(<sanitizer/common_interface_defs.h>)
#undef SEMEL_FIBERS_SANITIZED
#endif

#ifdef SEMEL_FIBERS_SANITIZED
#include <sanitizer/common_interface_defs.h>
#endif

namespace semel::sim {

#ifdef SEMEL_FIBERS_SANITIZED
inline constexpr std::size_t stack_size = 512u << 10;
inline void leave(void** shadow, const void* bottom, std::size_t size) {
  __sanitizer_start_switch_fiber(shadow, bottom, size);
}
inline void arrive(void* shadow, const void** bottom, std::size_t* size) {
  __sanitizer_finish_switch_fiber(shadow, bottom, size);
}
#else
inline constexpr std::size_t stack_size = 128u << 10;
inline void leave(void**, const void*, std::size_t) {}
inline void arrive(void*, const void**, std::size_t*) {}
#endif

}  // namespace semel::sim
