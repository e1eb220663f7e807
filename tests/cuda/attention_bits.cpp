// What attention promises to the bit: nothing of a later row reaches an earlier one, and training, prefill and decoding agree.
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "suite.hpp"

namespace {

constexpr gyre::attention_shape shape{4, 2, 8, 0.35};
constexpr gyre::index wide = shape.heads * shape.width, narrow = shape.kv_heads * shape.width;

/// Device memory of so many rows, full of numbers.
class device_rows {
 public:
  device_rows(gyre_test::shuffled_cuda& device, gyre::index rows, gyre::index cols, std::uint64_t salt)
      : device_(device),
        rows_(rows),
        cols_(cols),
        memory_(device.allocate(sizeof(float) * static_cast<std::size_t>(size() + 1))) {
    const gyre::random_stream stream(gyre::seed{salt}, gyre::purpose::task, 0);
    stream.fill_normal(std::span<float>(data(), static_cast<std::size_t>(size())), gyre::counter{}, 1.0);
  }
  ~device_rows() { device_.deallocate(memory_, sizeof(float) * static_cast<std::size_t>(size() + 1)); }
  device_rows(const device_rows&) = delete;
  device_rows& operator=(const device_rows&) = delete;

  float* data() const { return reinterpret_cast<float*>(memory_); }
  gyre::matrix_view<float> view() const { return {data(), rows_, cols_}; }
  gyre::matrix_view<const float> read() const { return view(); }
  gyre::index size() const { return rows_ * cols_; }
  /// Of rows [first, first + count).
  std::vector<float> values(gyre::index first, gyre::index count) const {
    return {data() + first * cols_, data() + (first + count) * cols_};
  }
  void spoil(gyre::index first, gyre::index count) {
    for (gyre::index i = first * cols_; i < (first + count) * cols_; ++i)
      data()[i] = i % 2 == 0 ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity();
  }

 private:
  gyre_test::shuffled_cuda& device_;
  gyre::index rows_, cols_;
  std::byte* memory_;
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), sizeof(float) * a.size()) == 0;
}

}  // namespace

TEST_CASE("attention of cuda: nothing of a later row reaches an earlier one", "[cuda_kernels]") {
  gyre_test::shuffled_cuda device;
  const gyre::index length = 100;
  const auto layout = gyre::batch_layout::uniform(1, length);
  device_rows q(device, length, wide, 1), k(device, length, narrow, 2), v(device, length, narrow, 3),
      o(device, length, wide, 4), lse(device, length, shape.heads, 5), d_o(device, length, wide, 6),
      dq(device, length, wide, 7), dk(device, length, narrow, 8), dv(device, length, narrow, 9),
      dot(device, length, shape.heads, 10);
  const auto run = [&] {
    device.attention(q.read(), k.read(), v.read(), layout, shape, o.view(), lse.data());
    device.attention_backward(q.read(), k.read(), v.read(), o.read(), lse.data(), d_o.read(), layout, shape, dq.view(),
                              dk.view(), dv.view(), dot.data());
  };
  run();
  const gyre::index whole = length;
  const auto all_o = o.values(0, whole), all_lse = lse.values(0, whole), all_dq = dq.values(0, whole),
             all_dk = dk.values(0, whole), all_dv = dv.values(0, whole);
  const auto first = [](const std::vector<float>& x, gyre::index rows, gyre::index cols) {
    return std::vector<float>(x.begin(), x.begin() + rows * cols);
  };
  const auto last = [](const std::vector<float>& x, gyre::index rows, gyre::index cols) {
    return std::vector<float>(x.end() - rows * cols, x.end());
  };
  for (const gyre::index cut : {99, 70, 33, 3}) {
    if (cut > 33 && gyre::simt::machine::watches_accesses()) continue;  // it takes its time
    CAPTURE(cut);
    device_rows q2(device, length, wide, 1), k2(device, length, narrow, 2), v2(device, length, narrow, 3),
        o2(device, length, wide, 4), lse2(device, length, shape.heads, 5), d_o2(device, length, wide, 6);
    // Later rows are not finite: o, lse and dq of the rows before do not change.
    q2.spoil(cut, length - cut), k2.spoil(cut, length - cut), v2.spoil(cut, length - cut), d_o2.spoil(cut, length - cut);
    device.attention(q2.read(), k2.read(), v2.read(), layout, shape, o2.view(), lse2.data());
    device.attention_backward(q2.read(), k2.read(), v2.read(), o2.read(), lse2.data(), d_o2.read(), layout, shape, dq.view(),
                              dk.view(), dv.view(), dot.data());
    CHECK(same_bits(o2.values(0, cut), first(all_o, cut, wide)));
    CHECK(same_bits(lse2.values(0, cut), first(all_lse, cut, shape.heads)));
    CHECK(same_bits(dq.values(0, cut), first(all_dq, cut, wide)));
    CHECK(std::isnan(o2.values(cut, 1)[0]));
    // Earlier queries are not finite: dk and dv of the rows from there on do not change.
    device_rows q3(device, length, wide, 1), d_o3(device, length, wide, 6), o3(device, length, wide, 4),
        lse3(device, length, shape.heads, 5);
    device.attention(q.read(), k.read(), v.read(), layout, shape, o3.view(), lse3.data());
    q3.spoil(0, cut), d_o3.spoil(0, cut), o3.spoil(0, cut), lse3.spoil(0, cut);
    device.attention_backward(q3.read(), k.read(), v.read(), o3.read(), lse3.data(), d_o3.read(), layout, shape, dq.view(),
                              dk.view(), dv.view(), dot.data());
    CHECK(same_bits(dk.values(cut, length - cut), last(all_dk, length - cut, narrow)));
    CHECK(same_bits(dv.values(cut, length - cut), last(all_dv, length - cut, narrow)));
    CHECK(std::isnan(dk.values(cut - 1, 1)[0]));
  }
}

TEST_CASE("attention of cuda: training, prefill in pieces and decoding give the same bits", "[cuda_kernels]") {
  gyre_test::shuffled_cuda device;
  const gyre::index length = 270, cursor = 3;
  device_rows q(device, length, wide, 1), k(device, length, narrow, 2), v(device, length, narrow, 3),
      o(device, length, wide, 4), cached(device, length, wide, 5), cache(device, length, cursor + 2 * narrow, 6);
  device.attention(q.read(), k.read(), v.read(), gyre::batch_layout::uniform(1, length), shape, o.view(),
                   static_cast<float*>(nullptr));
  const std::vector<gyre::cache_lane<float>> lanes{{cache.data(), length, nullptr}};
  gyre::index past = 0;
  for (const gyre::index count : {70, 1, 2, 183, 1, 13}) {  // the first part of the keys ends at 256
    gyre::batch_layout layout;
    layout.add(count, past, 1);
    const std::span<const gyre::cache_lane<float>> all(lanes);
    device.cache_append(k.read().slice(past, count), v.read().slice(past, count), layout, all, cursor);
    device.cached_attention(q.read().slice(past, count), layout, all, cursor, shape, 0, cached.view().slice(past, count));
    past += count;
  }
  REQUIRE(past == length);
  CHECK(same_bits(o.values(0, length), cached.values(0, length)));
}

TEST_CASE("attention of cuda over a cache leaves out tokens that ran too few steps, whatever they hold", "[cuda_kernels]") {
  gyre_test::shuffled_cuda device;
  for (const gyre::index past : {gyre::index{40}, gyre::index{300}}) {
    device_rows q(device, 2, wide, 1), cache(device, past + 2, 2 * narrow, 2), o(device, 2, wide, 3), again(device, 2, wide, 4);
    std::vector<std::int32_t> steps(static_cast<std::size_t>(past + 2));
    for (std::size_t n = 0; n < steps.size(); ++n) steps[n] = n % 3 == 0 ? 1 : 2;
    const std::vector<gyre::cache_lane<float>> lanes{{cache.data(), past + 2, steps.data()}};
    gyre::batch_layout layout;
    layout.add(2, past, 1);
    const std::span<const gyre::cache_lane<float>> all(lanes);
    device.cached_attention(q.read(), layout, all, 0, shape, 1, o.view());
    const gyre::matrix_view<float> tokens(cache.data(), 2 * (past + 2), narrow);  // keys, then values
    for (gyre::index n = 0; n < past; n += 3)
      for (gyre::index c = 0; c < narrow; ++c) tokens[n][c] = tokens[past + 2 + n][c] = std::numeric_limits<float>::quiet_NaN();
    device.cached_attention(q.read(), layout, all, 0, shape, 1, again.view());
    CHECK(same_bits(o.values(0, 2), again.values(0, 2)));
  }
}

TEST_CASE("attention of cuda says which widths it has kernels for", "[cuda_kernels]") {
  gyre_test::shuffled_cuda device;
  const gyre::matrix_view<float> x(nullptr, 0, 257);
  CHECK_THROWS_WITH((device.attention<float, float>(x, x, x, gyre::batch_layout(), {1, 1, 257}, x, nullptr)),
                    "attention: heads of 257 features; the cuda backend has kernels for up to 256");
}
