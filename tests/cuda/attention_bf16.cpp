// Attention of cuda in bf16, on emulated tensor cores and without.
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "attention.hpp"

namespace {

/// Of so many rows of bf16 in device memory, `offset` scalars behind an aligned address.
class bf16_rows {
 public:
  bf16_rows(gyre_test::shuffled_cuda& device, gyre::index rows, gyre::index cols, std::uint64_t salt, gyre::index offset)
      : device_(device),
        rows_(rows),
        cols_(cols),
        bytes_(2 * static_cast<std::size_t>(rows * cols + offset + 1)),
        memory_(device.allocate(bytes_)),
        data_(reinterpret_cast<gyre::bfloat16*>(memory_) + offset) {
    const gyre::random_stream stream(gyre::seed{salt}, gyre::purpose::task, 0);
    std::vector<float> x(static_cast<std::size_t>(rows * cols));
    stream.fill_normal(std::span<float>(x), gyre::counter{}, 1.0);
    for (std::size_t i = 0; i < x.size(); ++i) data_[i] = gyre::bfloat16(x[i]);
  }
  ~bf16_rows() { device_.deallocate(memory_, bytes_); }
  bf16_rows(const bf16_rows&) = delete;
  bf16_rows& operator=(const bf16_rows&) = delete;

  gyre::matrix_view<gyre::bfloat16> view() const { return {data_, rows_, cols_, cols_}; }
  gyre::matrix_view<const gyre::bfloat16> read() const { return view(); }
  double at(gyre::index i, gyre::index j) const { return static_cast<double>(static_cast<float>(data_[i * cols_ + j])); }
  /// Rows first to last - 1 become NaN.
  void spoil(gyre::index first, gyre::index last) {
    for (gyre::index i = first * cols_; i < last * cols_; ++i) data_[i] = gyre::bfloat16(std::nanf(""));
  }
  std::vector<std::uint16_t> bits(gyre::index first, gyre::index last) const {
    std::vector<std::uint16_t> x(static_cast<std::size_t>((last - first) * cols_));
    std::memcpy(x.data(), data_ + first * cols_, 2 * x.size());
    return x;
  }

 private:
  gyre_test::shuffled_cuda& device_;
  gyre::index rows_, cols_;
  std::size_t bytes_;
  std::byte* memory_;
  gyre::bfloat16* data_;
};

}  // namespace

// Sequences, length, key/value heads, queries on each, width, gap, offset, special. A width of 64 or 128 without gap and offset is
// for the tensor cores.
TEST_CASE("attention of cuda in bf16 agrees with the reference across tiles", "[cuda_kernels]") {
  gyre_test::check_sizes<gyre::bfloat16, gyre::operation::attention>({{1, 131, 1, 1, 64},
                                                                      {1, 45, 2, 3, 128},
                                                                      {5, 9, 1, 5, 64, 0, 0, 1},
                                                                      {1, 40, 1, 1, 40},
                                                                      {1, 40, 1, 2, 64, 0, 1},
                                                                      {1, 290, 1, 1, 64},
                                                                      {1, 20, 1, 1, 256},
                                                                      {1, 18, 1, 17, 64},
                                                                      {2, 65, 1, 1, 64}});
}

TEST_CASE("gradients of attention of cuda in bf16 agree with the reference across tiles", "[cuda_kernels]") {
  gyre_test::check_sizes<gyre::bfloat16, gyre::operation::attention_backward>({{1, 131, 1, 1, 64},
                                                                               {1, 45, 2, 3, 128},
                                                                               {5, 9, 1, 5, 64, 0, 0, 1},
                                                                               {1, 40, 1, 1, 40},
                                                                               {1, 40, 1, 2, 64, 0, 1},
                                                                               {1, 20, 1, 1, 256},
                                                                               {1, 18, 1, 16, 64},
                                                                               {1, 18, 1, 15, 64},
                                                                               {2, 65, 1, 1, 64}});
}

TEST_CASE("attention of cuda in bf16 keeps its promises to the bit", "[cuda_kernels]") {
  gyre_test::shuffled_cuda device;
  const gyre::index length = 270, width = 64, narrow = width, wide = 3 * narrow;
  const gyre::attention_shape shape{3, 1, width, 0.125};
  bf16_rows q(device, length, wide, 1, 0), k(device, length, narrow, 2, 0), v(device, length, narrow, 3, 0),
      o(device, length, wide, 4, 0), o2(device, length, wide, 4, 0), cached(device, length, wide, 5, 0),
      cache(device, length, 2 * narrow, 6, 0);
  const auto layout = gyre::batch_layout::uniform(1, length);
  float* const no_lse = nullptr;
  device.attention(q.read(), k.read(), v.read(), layout, shape, o.view(), no_lse);

  const std::vector<gyre::cache_lane<gyre::bfloat16>> lanes{{cache.view().data, length, nullptr}};
  const std::span<const gyre::cache_lane<gyre::bfloat16>> all(lanes);
  gyre::index past = 0;
  for (const gyre::index count : {70, 1, 2, 183, 1, 13}) {
    gyre::batch_layout some;
    some.add(count, past, 1);
    device.cache_append(k.read().slice(past, count), v.read().slice(past, count), some, all, gyre::index{0});
    device.cached_attention(q.read().slice(past, count), some, all, gyre::index{0}, shape, 0, cached.view().slice(past, count));
    past += count;
  }
  REQUIRE(past == length);
  CHECK(o.bits(0, length) == cached.bits(0, length));

  for (const gyre::index cut : {269, 250, 37, 3}) {
    CAPTURE(cut);
    q.spoil(cut, length), k.spoil(cut, length), v.spoil(cut, length);
    device.attention(q.read(), k.read(), v.read(), layout, shape, o2.view(), no_lse);
    CHECK(o.bits(0, cut) == o2.bits(0, cut));
    CHECK(std::isnan(o2.at(cut, 0)));
  }
}

TEST_CASE("gradients of attention of cuda in bf16 see nothing of other rows", "[cuda_kernels]") {
  gyre_test::shuffled_cuda device;
  const gyre::index length = 100, width = 64, narrow = width, wide = 3 * narrow, cut = 70;
  const gyre::attention_shape shape{3, 1, width, 0.125};
  const auto layout = gyre::batch_layout::uniform(1, length);
  const std::size_t bytes = sizeof(float) * static_cast<std::size_t>(length * shape.heads);
  std::byte *const lse_memory = device.allocate(bytes), *const dot_memory = device.allocate(bytes);
  float *const lse = reinterpret_cast<float*>(lse_memory), *const dot = reinterpret_cast<float*>(dot_memory);
  const auto run = [&](gyre::index first, gyre::index count, auto check) {
    bf16_rows q(device, length, wide, 1, 0), k(device, length, narrow, 2, 0), v(device, length, narrow, 3, 0),
        o(device, length, wide, 4, 0), d_o(device, length, wide, 5, 0), dq(device, length, wide, 6, 0),
        dk(device, length, narrow, 7, 0), dv(device, length, narrow, 8, 0);
    device.attention(q.read(), k.read(), v.read(), layout, shape, o.view(), lse);
    q.spoil(first, first + count), d_o.spoil(first, first + count);
    if (first > 0) k.spoil(first, first + count), v.spoil(first, first + count);
    device.attention_backward(q.read(), k.read(), v.read(), o.read(), lse, d_o.read(), layout, shape, dq.view(), dk.view(),
                              dv.view(), dot);
    check(dq, dk, dv);
  };
  std::vector<std::uint16_t> all_dq, all_dk, all_dv;
  run(0, 0, [&](auto& dq, auto& dk, auto& dv) {
    all_dq = dq.bits(0, cut), all_dk = dk.bits(cut, length), all_dv = dv.bits(cut, length);
  });
  run(cut, length - cut, [&](auto& dq, auto&, auto&) {  // later rows: all of them
    CHECK(dq.bits(0, cut) == all_dq);
    CHECK(std::isnan(dq.at(cut, 0)));
  });
  run(0, cut, [&](auto&, auto& dk, auto& dv) {  // earlier queries
    CHECK(dk.bits(cut, length) == all_dk);
    CHECK(dv.bits(cut, length) == all_dv);
    CHECK(std::isnan(dk.at(cut - 1, 0)));
  });
  device.deallocate(lse_memory, bytes), device.deallocate(dot_memory, bytes);
}

// Lanes of 72 and 96 tokens: the third scalar of each, the cursor, begins a row on an address of 16 bytes.
TEST_CASE("attention of cuda in bf16 over a cache agrees with the reference across tiles", "[cuda_kernels]") {
  gyre_test::check_sizes<gyre::bfloat16, gyre::operation::cached_attention>(
      {{1, 3, 1, 3, 64, 0, 0, 0, 67, 1}, {1, 1, 2, 5, 128, 0, 0, 0, 93}, {1, 3, 1, 3, 64, 0, 0, 2, 67, 1}});
}

TEST_CASE("attention of cuda in bf16 does not see past tokens that ran too few steps", "[cuda_kernels]") {
  const gyre::index past = 70, count = 3, length = past + count, width = 64, wide = 3 * width;
  const gyre::attention_shape shape{3, 1, width, 0.125};
  gyre_test::shuffled_cuda device;
  bf16_rows q(device, count, wide, 1, 0), o(device, count, wide, 2, 0), o2(device, count, wide, 4, 0),
      cache(device, 2 * length, width, 3, 0);
  std::vector<std::int32_t> steps_run;
  for (gyre::index i = 0; i < past; ++i) steps_run.push_back(static_cast<std::int32_t>(i % 3));
  gyre::batch_layout rows;
  rows.add(count, past, 0);
  const std::vector<gyre::cache_lane<gyre::bfloat16>> lanes{{cache.view().data, length, steps_run.data()}};
  const auto attend = [&](const bf16_rows& to) {
    device.cached_attention(q.read(), rows, std::span<const gyre::cache_lane<gyre::bfloat16>>(lanes), gyre::index{0}, shape, 1,
                            to.view());
  };
  attend(o);
  for (gyre::index i = 0; i < past; ++i)
    if (i % 3 <= 1) cache.spoil(i, i + 1), cache.spoil(length + i, length + i + 1);  // its key, and its value
  attend(o2);
  CHECK(o.bits(0, count) == o2.bits(0, count));
  CHECK(o.at(0, 0) != 0);
  cache.spoil(2, 3);
  attend(o2);
  CHECK(std::isnan(o2.at(0, 0)));
}
