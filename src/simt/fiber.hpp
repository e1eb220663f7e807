// A fiber per GPU thread: a stack and a way to change to another one.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "mapping.hpp"
#include <gyre/simt/position.hpp>

// Written by hand for x86-64. Elsewhere, or with GYRE_SIMT_UCONTEXT, the C library's contexts, which call the kernel each time.
#if !defined(__x86_64__) && !defined(GYRE_SIMT_UCONTEXT)
#define GYRE_SIMT_UCONTEXT
#endif
#if defined(GYRE_SIMT_UCONTEXT)
#include <ucontext.h>
#endif

namespace gyre_simt {
namespace detail {

struct fiber {
#if defined(GYRE_SIMT_UCONTEXT)
  ucontext_t context;
#else
  void* stack_pointer = nullptr;
#endif
  char* stack = nullptr;       // lowest address
  void* fake_stack = nullptr;  // the address sanitizer's
};

#if !defined(GYRE_SIMT_UCONTEXT)
// Saves what the calling convention lets a function keep, stores the stack pointer at `save` and goes on at `to`.
__attribute__((naked, noinline)) inline void swap_stacks(void** /*save*/, void* /*to*/) {
  __asm__ volatile(
      "pushq %rbp\n\t"
      "pushq %rbx\n\t"
      "pushq %r12\n\t"
      "pushq %r13\n\t"
      "pushq %r14\n\t"
      "pushq %r15\n\t"
      "movq %rsp, (%rdi)\n\t"
      "movq %rsi, %rsp\n\t"
      "popq %r15\n\t"
      "popq %r14\n\t"
      "popq %r13\n\t"
      "popq %r12\n\t"
      "popq %rbx\n\t"
      "popq %rbp\n\t"
      "ret\n\t");
}
#endif

// Makes `f` start at `entry`, which must never return.
GYRE_SIMT_ENGINE inline void prepare(fiber& f, std::size_t stack_bytes, void (*entry)()) {
  f.fake_stack = nullptr;
#if defined(GYRE_SIMT_UCONTEXT)
  getcontext(&f.context);
  f.context.uc_stack.ss_sp = f.stack;
  f.context.uc_stack.ss_size = stack_bytes;
  f.context.uc_link = nullptr;
  makecontext(&f.context, entry, 0);
#else
  // The slot of the return address, with the alignment that a call leaves; six saved registers lie below it.
  void** const slot = reinterpret_cast<void**>(f.stack + stack_bytes) - 2;
  *slot = reinterpret_cast<void*>(entry);
  f.stack_pointer = slot - 6;
#endif
}

// Leaves `from` for `to`. `bottom`, `bytes`: the stack of `to`. `ends`: `from` is never resumed.
GYRE_SIMT_ENGINE inline void change(fiber& from, fiber& to, const void* bottom, std::size_t bytes, bool ends) {
  if (__sanitizer_start_switch_fiber != nullptr)
    __sanitizer_start_switch_fiber(ends ? nullptr : &from.fake_stack, bottom, bytes);
#if defined(GYRE_SIMT_UCONTEXT)
  swapcontext(&from.context, &to.context);
#else
  swap_stacks(&from.stack_pointer, to.stack_pointer);
#endif
  if (__sanitizer_finish_switch_fiber != nullptr) __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
}

/// Stacks for the threads of a block, each with a page below it that catches an overflow.
class stack_set {
 public:
  static constexpr std::size_t guard_bytes = 4096;

  void reserve(std::size_t count, std::size_t bytes_each) {
    bytes_each = round_up(bytes_each, guard_bytes) + guard_bytes;
    if (count <= count_ && bytes_each == bytes_each_) return;
    pages_ = mapping();  // the old ones go first
    pages_ = mapping(count * bytes_each);
    for (std::size_t i = 0; i < count; ++i)
      if (mprotect(pages_.data() + i * bytes_each, guard_bytes, PROT_NONE) != 0) throw std::bad_alloc();
    count_ = count;
    bytes_each_ = bytes_each;
  }
  char* stack(std::size_t i) const { return reinterpret_cast<char*>(pages_.data()) + i * bytes_each_ + guard_bytes; }
  std::size_t stack_bytes() const { return bytes_each_ - guard_bytes; }
  std::uintptr_t begin() const { return reinterpret_cast<std::uintptr_t>(pages_.data()); }
  std::size_t bytes() const { return pages_.size(); }
  /// Frames that were left behind keep the address sanitizer's marks; a new block starts without.
  void forget_frames() const {
    for (std::size_t i = 0; i < count_; ++i) unpoison(stack(i), stack_bytes());
  }

 private:
  mapping pages_;
  std::size_t count_ = 0, bytes_each_ = 0;
};

}  // namespace detail
}  // namespace gyre_simt
