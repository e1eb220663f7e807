// Attention of cuda in bf16, on emulated tensor cores and without, against fp64.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "suite.hpp"

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

struct bf16_case {
  gyre::index length, kv_heads, group, width, offset = 0;
};

}  // namespace

TEST_CASE("attention of cuda in bf16 agrees with fp64", "[cuda_kernels]") {
  for (const bf16_case& c : {bf16_case{131, 1, 1, 64}, bf16_case{45, 2, 3, 128}, bf16_case{7, 1, 5, 64},
                             bf16_case{40, 1, 1, 40}, bf16_case{40, 1, 2, 64, 1}, bf16_case{290, 1, 1, 64},
                             bf16_case{20, 1, 1, 256}, bf16_case{18, 1, 17, 64}, bf16_case{65, 1, 1, 64}}) {
    CAPTURE(c.length, c.kv_heads, c.group, c.width, c.offset);
    gyre_test::shuffled_cuda device;
    const gyre::index heads = c.kv_heads * c.group, wide = heads * c.width, narrow = c.kv_heads * c.width;
    const gyre::attention_shape shape{heads, c.kv_heads, c.width, 1 / std::sqrt(static_cast<double>(c.width))};
    bf16_rows q(device, c.length, wide, 1, c.offset), k(device, c.length, narrow, 2, c.offset),
        v(device, c.length, narrow, 3, c.offset), o(device, c.length, wide, 4, c.offset);
    std::byte* const memory = device.allocate(sizeof(float) * static_cast<std::size_t>(c.length * heads));
    float* const lse = reinterpret_cast<float*>(memory);
    device.attention(q.read(), k.read(), v.read(), gyre::batch_layout::uniform(1, c.length), shape, o.view(), lse);
    double worst = 0, worst_lse = 0;  // over their tolerances
    for (gyre::index i = 0; i < c.length; ++i)
      for (gyre::index h = 0; h < heads; ++h) {
        const gyre::index g = h / c.group;
        std::vector<double> p;
        double sum = 0, terms = 0;  // terms: the largest sum of absolute products of a score
        for (gyre::index j = 0; j <= i; ++j) {
          double score = 0, size = 0;
          for (gyre::index n = 0; n < c.width; ++n) {
            const double product = q.at(i, h * c.width + n) * k.at(j, g * c.width + n) * shape.scale;
            score += product, size += std::fabs(product);
          }
          p.push_back(std::exp(score));
          sum += p.back();
          terms = (std::max)(terms, size);
        }
        // fp32: sums of n terms as the contract has them, exponentials 4 eps. bf16, whose unit is 2^-8: the weight's rounding
        // and the result's.
        const double eps = std::ldexp(1, -23), n = static_cast<double>(c.width + i + 1),
                     of_weights = 2 * (2 * n * eps * terms + 4 * eps) + 2 * n * eps;
        for (gyre::index f = 0; f < c.width; ++f) {
          double exact = 0, size = 0;
          for (gyre::index j = 0; j <= i; ++j) {
            const double x = p[static_cast<std::size_t>(j)] / sum * v.at(j, g * c.width + f);
            exact += x, size += std::fabs(x);
          }
          const double tolerance =
              (of_weights + std::ldexp(1, -8)) * size + std::ldexp(1, -8) * (1 + of_weights) * std::fabs(exact);
          worst = (std::max)(worst, std::fabs(o.at(i, h * c.width + f) - exact) / tolerance);
        }
        worst_lse = (std::max)(
            worst_lse, std::fabs(lse[i * heads + h] - std::log(sum)) / (of_weights + 4 * eps * (1 + std::fabs(std::log(sum)))));
      }
    device.deallocate(memory, sizeof(float) * static_cast<std::size_t>(c.length * heads));
    CHECK(worst <= 1);
    CHECK(worst > 0);
    CHECK(worst_lse <= 1);
  }
}

TEST_CASE("gradients of attention of cuda in bf16 agree with fp64", "[cuda_kernels]") {
  for (const bf16_case& c : {bf16_case{131, 1, 1, 64}, bf16_case{45, 2, 3, 128}, bf16_case{15, 1, 5, 64},
                             bf16_case{40, 1, 1, 40}, bf16_case{40, 1, 2, 64, 1}, bf16_case{20, 1, 1, 256},
                             bf16_case{65, 1, 1, 64}, bf16_case{18, 1, 16, 64}, bf16_case{18, 1, 15, 64}}) {
    CAPTURE(c.length, c.kv_heads, c.group, c.width, c.offset);
    gyre_test::shuffled_cuda device;
    const gyre::index heads = c.kv_heads * c.group, wide = heads * c.width, narrow = c.kv_heads * c.width;
    const gyre::attention_shape shape{heads, c.kv_heads, c.width, 1 / std::sqrt(static_cast<double>(c.width))};
    bf16_rows q(device, c.length, wide, 1, c.offset), k(device, c.length, narrow, 2, c.offset),
        v(device, c.length, narrow, 3, c.offset), o(device, c.length, wide, 4, c.offset),
        d_o(device, c.length, wide, 5, c.offset), dq(device, c.length, wide, 6, c.offset),
        dk(device, c.length, narrow, 7, c.offset), dv(device, c.length, narrow, 8, c.offset);
    const std::size_t bytes = sizeof(float) * static_cast<std::size_t>(c.length * heads);
    std::byte *const lse_memory = device.allocate(bytes), *const dot_memory = device.allocate(bytes);
    float *const lse = reinterpret_cast<float*>(lse_memory), *const workspace = reinterpret_cast<float*>(dot_memory);
    const auto layout = gyre::batch_layout::uniform(1, c.length);
    device.attention(q.read(), k.read(), v.read(), layout, shape, o.view(), lse);
    device.attention_backward(q.read(), k.read(), v.read(), o.read(), lse, d_o.read(), layout, shape, dq.view(), dk.view(),
                              dv.view(), workspace);
    // Sums and the bounds of their errors, of dq, dk and dv.
    const auto zeros = [&](gyre::index cols) { return std::vector<double>(static_cast<std::size_t>(c.length * cols)); };
    std::vector<double> q_sum = zeros(wide), q_bound = zeros(wide), k_sum = zeros(narrow), k_bound = zeros(narrow),
                        v_sum = zeros(narrow), v_bound = zeros(narrow);
    const double eps = std::ldexp(1, -23), unit = std::ldexp(1, -8), d = static_cast<double>(c.width),
                 of_sums = 2 * eps * static_cast<double>(c.length * c.group);
    for (gyre::index i = 0; i < c.length; ++i)
      for (gyre::index h = 0; h < heads; ++h) {
        const gyre::index g = h / c.group;
        const auto at = [](gyre::index row, gyre::index cols, gyre::index col) {
          return static_cast<std::size_t>(row * cols + col);
        };
        double dot = 0, dot_size = 0;
        for (gyre::index f = h * c.width; f < (h + 1) * c.width; ++f)
          dot += d_o.at(i, f) * o.at(i, f), dot_size += std::fabs(d_o.at(i, f) * o.at(i, f));
        for (gyre::index j = 0; j <= i; ++j) {
          double score = 0, score_size = 0, dp = 0, dp_size = 0;
          for (gyre::index f = 0; f < c.width; ++f) {
            const double of_score = q.at(i, h * c.width + f) * k.at(j, g * c.width + f) * shape.scale,
                         of_dp = d_o.at(i, h * c.width + f) * v.at(j, g * c.width + f);
            score += of_score, score_size += std::fabs(of_score), dp += of_dp, dp_size += std::fabs(of_dp);
          }
          const double l = static_cast<double>(lse[i * heads + h]), p = std::exp((std::min)(score - l, 0.0)),
                       of_p = 2 * d * eps * score_size + eps * (std::fabs(score) + std::fabs(l)) + 4 * eps,
                       ds = p * (dp - dot) * shape.scale,
                       of_ds = (of_p + 4 * eps) * std::fabs(ds) + p * shape.scale * 2 * d * eps * (dp_size + dot_size);
          for (gyre::index f = 0; f < c.width; ++f) {
            const auto add = [&](std::vector<double>& sum, std::vector<double>& bound, std::size_t to, double x, double of_x,
                                 double y) {
              sum[to] += x * y;
              bound[to] += ((unit + of_sums) * std::fabs(x) + (1 + unit) * of_x) * std::fabs(y);
            };
            add(q_sum, q_bound, at(i, wide, h * c.width + f), ds, of_ds, k.at(j, g * c.width + f));
            add(k_sum, k_bound, at(j, narrow, g * c.width + f), ds, of_ds, q.at(i, h * c.width + f));
            add(v_sum, v_bound, at(j, narrow, g * c.width + f), p, of_p * p, d_o.at(i, h * c.width + f));
          }
        }
      }
    const auto worst = [&](const bf16_rows& x, gyre::index cols, const std::vector<double>& sum,
                           const std::vector<double>& bound) {
      double most = 0;
      for (gyre::index i = 0; i < c.length; ++i)
        for (gyre::index n = 0; n < cols; ++n) {
          const auto to = static_cast<std::size_t>(i * cols + n);
          const double tolerance = bound[to] * (1 + unit) + unit * std::fabs(sum[to]) + (std::numeric_limits<double>::min)();
          most = (std::max)(most, std::fabs(x.at(i, n) - sum[to]) / tolerance);
        }
      return most;
    };
    const double of_q = worst(dq, wide, q_sum, q_bound), of_k = worst(dk, narrow, k_sum, k_bound),
                 of_v = worst(dv, narrow, v_sum, v_bound);
    device.deallocate(lse_memory, bytes), device.deallocate(dot_memory, bytes);
    CHECK(of_q <= 1);
    CHECK(of_k <= 1);
    CHECK(of_v <= 1);
    CHECK((std::min)({of_q, of_k, of_v}) > 0.01);
  }
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

TEST_CASE("attention of cuda in bf16 leaves out past tokens that ran too few steps", "[cuda_kernels]") {
  const gyre::index past = 70, count = 3, length = past + count, width = 64, wide = 3 * width;
  const gyre::attention_shape shape{3, 1, width, 0.125};
  gyre_test::shuffled_cuda device;
  bf16_rows q(device, count, wide, 1, 0), o(device, count, wide, 2, 0), cache(device, 2 * length, width, 3, 0);
  std::vector<std::int32_t> steps_run;
  for (gyre::index i = 0; i < past; ++i) {
    steps_run.push_back(static_cast<std::int32_t>(i % 3));
    if (i % 3 <= 1) cache.spoil(i, i + 1), cache.spoil(length + i, length + i + 1);  // a key, and a value, that nobody sees
  }
  const auto widened = [](const bf16_rows& x) {
    std::vector<float> y;
    for (gyre::index i = 0; i < x.view().rows; ++i)
      for (gyre::index j = 0; j < x.view().cols; ++j) y.push_back(static_cast<float>(x.at(i, j)));
    return y;
  };
  std::vector<float> wide_q = widened(q), wide_cache = widened(cache), exact(static_cast<std::size_t>(count * wide));
  gyre::batch_layout rows;
  rows.add(count, past, 0);
  const auto attend = [&](auto& backend, auto from, auto* memory, auto to) {
    using T = std::remove_pointer_t<decltype(memory)>;
    const std::vector<gyre::cache_lane<T>> lanes{{memory, length, steps_run.data()}};
    backend.cached_attention(from, rows, std::span<const gyre::cache_lane<T>>(lanes), gyre::index{0}, shape, 1, to);
  };
  gyre::reference reference;
  attend(reference, gyre::matrix_view<const float>(wide_q.data(), count, wide), wide_cache.data(),
         gyre::matrix_view<float>(exact.data(), count, wide));
  attend(device, q.read(), cache.view().data, o.view());
  float most = 0;  // of the values seen
  for (const float x : wide_cache)
    if (std::fabs(x) > most) most = std::fabs(x);
  // Weights and the result are rounded to bf16, by 2^-8 of them each; fp32's errors are below a hundredth of that.
  double worst = 0;
  for (gyre::index i = 0; i < count; ++i)
    for (gyre::index j = 0; j < wide; ++j)
      worst = (std::max)(worst, std::fabs(o.at(i, j) - static_cast<double>(exact[static_cast<std::size_t>(i * wide + j)])));
  CHECK(worst <= 2.02 * std::ldexp(1, -8) * static_cast<double>(most));
  CHECK(worst > 0);
}
