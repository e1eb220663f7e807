// Products with a matrix for each group of rows.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include <gyre/backend/cpu.hpp>
#include <gyre/backend/dry.hpp>
#include <gyre/backend/reference.hpp>

#include "support.hpp"
#include "support/compare.hpp"

namespace gyre_test {  // at global scope POSIX has an `index` of its own
namespace {

using gyre::cpu;
using gyre::reference;
using gyre::row_groups;
using gyre::weight_matrix;
using exact = long double;

/// Matrices (out, in) of several groups in one flat buffer, each the left block of a tensor (out, 2 in), the tensors further apart
/// than they are large; all else nothing may read or write.
template <class T>
struct stacked {
  index count, out, in, row_stride, stride;
  std::vector<T> flat;

  static constexpr T canary = T(54321);

  stacked(index groups, index out_, index in_, std::uint64_t number)
      : count(groups), out(out_), in(in_), row_stride(2 * in_), stride(out_ * 2 * in_ + 5) {
    flat.assign(static_cast<std::size_t>(count * stride + 1), canary);
    for (index g = 0; g < count; ++g) {
      const grid<T> values = random_grid<T>(out, in, 1000 * number + static_cast<std::uint64_t>(g));
      for (index o = 0; o < out; ++o) std::copy_n(values[o], in, flat.data() + g * stride + o * row_stride);
    }
  }
  matrix_view<T> operator[](index g) { return {flat.data() + g * stride, out, in, row_stride}; }
  matrix_view<const T> read(index g) const { return {flat.data() + g * stride, out, in, row_stride}; }
  std::vector<gyre::tensor_entry> table() const {
    std::vector<gyre::tensor_entry> entries;
    for (index g = 0; g < count; ++g) entries.push_back({g * stride, {out, 2 * in}, gyre::role::adapter, {.columns = 2}});
    return entries;
  }
  bool gaps_intact() const {
    for (index at = 0; at < static_cast<index>(flat.size()); ++at) {
      const index in_group = at % stride, row = in_group / row_stride;
      const bool inside = at / stride < count && row < out && in_group % row_stride < in;
      if (!inside && flat[static_cast<std::size_t>(at)] != canary) return false;
    }
    return true;
  }
  template <class U>
  stacked<U> as() const {
    stacked<U> other(0, out, in, 0);
    other.count = count, other.flat.assign(flat.begin(), flat.end());
    return other;
  }
  stacked absolute() const {
    stacked other(*this);
    for (T& x : other.flat) x = std::fabs(x);
    return other;
  }
};

struct grouping {
  std::vector<std::int32_t> offsets{0};
  explicit grouping(const std::vector<index>& counts) {
    for (const index n : counts) offsets.push_back(offsets.back() + static_cast<std::int32_t>(n));
  }
  index count() const { return static_cast<index>(offsets.size()) - 1; }
  index rows() const { return offsets.back(); }
  row_groups of(index stride) const { return {offsets.data(), count(), stride}; }
};

struct shape {
  index out, in;
};
const std::vector<index> groupings[] = {{},
                                        {0},
                                        {0, 0, 0},
                                        {5},
                                        {1, 1, 1, 1},
                                        {0, 0, 7, 0},
                                        {3, 0, 1, 130, 0, 29},
                                        {2, 0, 15, 8, 1, 0, 0, 16, 13},
                                        {168, 14, 0, 126}};
const shape shapes[] = {{1, 1}, {40, 7}, {33, 65}, {129, 257}};

template <class T, class Prepared>
using weight = weight_matrix<T, Prepared>;

template <class T>
grid<T> garbage(index rows, index cols) {
  return grid<T>(rows, cols);  // NaN everywhere
}

/// All three operations on one backend, from the same inputs at each call.
template <class T>
struct outcome {
  grid<T> y, y_sum, dx, dx_sum;
  stacked<T> dw;
  template <class B>
  outcome(B b, const grouping& groups, shape s, const stacked<T>& w, const grid<T>& x, const grid<T>& dy, const grid<T>& y0,
          const grid<T>& dx0, const stacked<T>& dw0, const typename B::template prepared<T>* prepared = nullptr)
      : y(garbage<T>(groups.rows(), s.out)), y_sum(y0), dx(garbage<T>(groups.rows(), s.in)), dx_sum(dx0), dw(dw0) {
    const weight<T, typename B::template prepared<T>> first{w.read(0), prepared};
    const row_groups g = groups.of(w.stride);
    b.grouped_product(x.read(), first, g, y.view(), false);
    b.grouped_product(x.read(), first, g, y_sum.view(), true);
    b.grouped_product_input_gradient(dy.read(), first, g, dx.view(), false);
    b.grouped_product_input_gradient(dy.read(), first, g, dx_sum.view(), true);
    b.grouped_product_weight_gradient(dy.read(), x.read(), g, dw[0]);
  }
};

template <class T>
struct problem {
  grouping groups;
  shape s;
  stacked<T> w, dw0;
  grid<T> x, dy, y0, dx0;

  problem(const std::vector<index>& counts, shape s_)
      : groups(counts),
        s(s_),
        w(groups.count(), s.out, s.in, 1),
        dw0(groups.count(), s.out, s.in, 2),
        x(random_grid<T>(groups.rows(), s.in, 1)),
        dy(random_grid<T>(groups.rows(), s.out, 2)),
        y0(random_grid<T>(groups.rows(), s.out, 3)),
        dx0(random_grid<T>(groups.rows(), s.in, 4)) {}

  /// With weights packed beforehand, as a network's are, or as they lie.
  outcome<T> run(cpu b, bool in_table = true) const {
    const cpu::prepared<T> prepared(b, w.flat.data(), w.table(), true);
    return {b, groups, s, w, x, dy, y0, dx0, dw0, in_table ? &prepared : nullptr};
  }
  outcome<exact> expected(bool sizes) const {
    const auto of = [&](const auto& values) {
      if (sizes) return values.absolute().template as<exact>();
      return values.template as<exact>();
    };
    return {reference(), groups, s, of(w), of(x), of(dy), of(y0), of(dx0), of(dw0)};
  }
};

template <class T>
std::string differing_bits(const outcome<T>& a, const outcome<T>& b) {
  return bit_differences(a.y.view(), b.y.view()) + bit_differences(a.y_sum.view(), b.y_sum.view()) +
         bit_differences(a.dx.view(), b.dx.view()) + bit_differences(a.dx_sum.view(), b.dx_sum.view()) +
         (a.dw.flat == b.dw.flat ? "" : "weight gradients differ");
}

/// Of a sum with `terms` terms whose absolute values add up to size[i][j].
template <class T>
auto bound(matrix_view<const exact> size, index terms) {
  return [size, terms](index i, index j) { return 2 * static_cast<exact>(terms + 1) * epsilon<T> * size[i][j]; };
}

}  // namespace

TEMPLATE_TEST_CASE("grouped products agree with the reference", "", float, double) {
  using T = TestType;
  for (const std::vector<index>& counts : groupings)
    for (const shape s : shapes) {
      const problem<T> p(counts, s);
      CAPTURE(counts, s.out, s.in);
      outcome<T> got = p.run(cpu(2));
      outcome<exact> want = p.expected(false), size = p.expected(true);
      CHECK(differences(got.y.read(), want.y.read(), bound<T>(size.y.read(), s.in)) == "");
      CHECK(differences(got.y_sum.read(), want.y_sum.read(), bound<T>(size.y_sum.read(), s.in)) == "");
      CHECK(differences(got.dx.read(), want.dx.read(), bound<T>(size.dx.read(), s.out)) == "");
      CHECK(differences(got.dx_sum.read(), want.dx_sum.read(), bound<T>(size.dx_sum.read(), s.out)) == "");
      for (index g = 0; g < p.groups.count(); ++g) {
        const index n = p.groups.offsets[static_cast<std::size_t>(g) + 1] - p.groups.offsets[static_cast<std::size_t>(g)];
        CHECK(differences(got.dw.read(g), want.dw.read(g), bound<T>(size.dw.read(g), n)) == "");
      }
      CHECK(got.dw.gaps_intact());
      for (const grid<T>* written : {&got.y, &got.y_sum, &got.dx, &got.dx_sum}) CHECK(written->margins_intact());
    }
}

TEMPLATE_TEST_CASE("grouped products have the bits of the products of each group alone", "", float, double) {
  using T = TestType;
  for (const std::vector<index>& counts : groupings)
    for (const shape s : {shape{33, 65}, {300, 801}}) {
      const problem<T> p(counts, s);
      CAPTURE(counts, s.out, s.in);
      const outcome<T> got = p.run(cpu(2));
      outcome<T> alone = p.run(cpu(1));
      alone.dw = p.dw0;
      cpu b(1);
      for (index g = 0; g < p.groups.count(); ++g) {
        const index first = p.groups.offsets[static_cast<std::size_t>(g)];
        const index n = p.groups.offsets[static_cast<std::size_t>(g) + 1] - first;
        const weight<T, cpu::prepared<T>> w{p.w.read(g), nullptr};
        const auto of = [&](auto view) { return view.slice(first, n); };
        b.copy(of(p.y0.read()), of(alone.y_sum.view()));
        b.copy(of(p.dx0.read()), of(alone.dx_sum.view()));
        b.product(of(p.x.read()), w, of(alone.y.view()), false);
        b.product(of(p.x.read()), w, of(alone.y_sum.view()), true);
        b.product_input_gradient(of(p.dy.read()), w, of(alone.dx.view()), false);
        b.product_input_gradient(of(p.dy.read()), w, of(alone.dx_sum.view()), true);
        b.product_weight_gradient(of(p.dy.read()), of(p.x.read()), alone.dw[g]);
      }
      CHECK(differing_bits(got, alone) == "");
      CHECK(differing_bits(p.run(cpu(2), false), alone) == "");
    }
}

TEMPLATE_TEST_CASE("grouped products have the same bits for 1, 2 and 3 threads", "[threads]", float, double) {
  using T = TestType;
  for (const std::vector<index>& counts : {std::vector<index>{3, 0, 1, 130, 0, 29}, {700}, {0, 300, 0, 300}})
    for (const shape s : {shape{33, 65}, {257, 129}}) {
      const problem<T> p(counts, s);
      CAPTURE(counts, s.out, s.in);
      const outcome<T> one = p.run(cpu(1));
      for (const int threads : {2, 3}) CHECK(differing_bits(p.run(cpu(threads)), one) == "");
    }
}

TEST_CASE("groups without rows cost no access to their matrices") {
  // Only the used group's matrices exist: the others' places are far outside the buffers.
  const index out = 40, in = 70, far = index{1} << 40;
  cpu b(2);
  const grouping groups({5, 0, 0});
  std::vector<float> w(static_cast<std::size_t>(out * in), 1.0f), dw(w.size(), 0.0f);
  const grid<float> x = random_grid<float>(5, in, 1), dy = random_grid<float>(5, out, 2);
  grid<float> y(5, out), dx(5, in), y_alone(5, out), dx_alone(5, in);
  const weight<float, cpu::prepared<float>> alone{{w.data(), out, in}, nullptr};
  b.grouped_product(x.read(), alone, groups.of(far), y.view(), false);
  b.grouped_product_input_gradient(dy.read(), alone, groups.of(far), dx.view(), false);
  b.grouped_product_weight_gradient(dy.read(), x.read(), groups.of(far), matrix_view<float>(dw.data(), out, in));
  b.product(x.read(), alone, y_alone.view(), false);
  b.product_input_gradient(dy.read(), alone, dx_alone.view(), false);
  CHECK(bit_differences(y.view(), y_alone.view()) == "");
  CHECK(bit_differences(dx.view(), dx_alone.view()) == "");
  std::vector<float> dw_alone(w.size(), 0.0f);
  b.product_weight_gradient(dy.read(), x.read(), matrix_view<float>(dw_alone.data(), out, in));
  CHECK(dw == dw_alone);
}

TEST_CASE("groups that do not cover the rows are refused with the numbers") {
  const index out = 4, in = 6;
  const stacked<float> w(3, out, in, 1);
  stacked<float> dw(3, out, in, 2);
  const grid<float> x = random_grid<float>(5, in, 1), dy = random_grid<float>(5, out, 2);
  grid<float> y(5, out), dx(5, in), narrow(5, out - 1);
  const auto refuse = [&](auto b, row_groups groups, const std::string& what) {
    const weight<float, typename decltype(b)::template prepared<float>> first{w.read(0), nullptr};
    CHECK_THROWS_WITH(b.grouped_product(x.read(), first, groups, y.view(), false),
                      Catch::Contains("grouped_product: ") && Catch::Contains(what));
    CHECK_THROWS_WITH(b.grouped_product_input_gradient(dy.read(), first, groups, dx.view(), false),
                      Catch::Contains("grouped_product_input_gradient: ") && Catch::Contains(what));
    CHECK_THROWS_WITH(b.grouped_product_weight_gradient(dy.read(), x.read(), groups, dw[0]),
                      Catch::Contains("grouped_product_weight_gradient: ") && Catch::Contains(what));
  };
  const auto refuse_everywhere = [&](row_groups groups, const std::string& what) {
    refuse(cpu(1), groups, what);
    refuse(reference(), groups, what);
  };
  refuse_everywhere(grouping({1, 1, 2}).of(w.stride), "from 0 to 4, but the operands have rows 0 to 5");
  refuse_everywhere(grouping({}).of(w.stride), "from 0 to 0, but the operands have rows 0 to 5");
  refuse_everywhere({nullptr, 3, w.stride}, "3 groups without offsets");
  const std::int32_t late[] = {1, 2, 2, 5}, descending[] = {0, 4, 3, 5};
  refuse_everywhere({late, 3, w.stride}, "from 1 to 5");
  refuse_everywhere({descending, 3, w.stride}, "offsets of group 1 descend, from 4 to 3");

  cpu b(1);
  const grouping fits({1, 1, 3});
  const weight<float, cpu::prepared<float>> first{w.read(0), nullptr};
  CHECK_THROWS_WITH(b.grouped_product(x.read(), first, fits.of(w.stride), narrow.view(), false), Catch::Contains("5 x 3"));
  CHECK_THROWS_WITH(b.grouped_product_input_gradient(narrow.read(), first, fits.of(w.stride), dx.view(), false),
                    Catch::Contains("5 x 3"));
  CHECK_THROWS_WITH(b.grouped_product_weight_gradient(narrow.read(), x.read(), fits.of(w.stride), dw[0]),
                    Catch::Contains("4 x 6"));
  for (const index stride : {index{0}, in - 1, (out - 1) * dw.row_stride})
    CHECK_THROWS_WITH(b.grouped_product_weight_gradient(dy.read(), x.read(), fits.of(stride), dw[0]),
                      Catch::Contains("4 x 6") && Catch::Contains("overlap"));
}

TEST_CASE("a plan counts the exact FLOPs of grouped products and no more matrices than could be used") {
  using planner = gyre::dry<cpu>;
  const index out = 40, in = 70, rows = 12;
  const auto cost = [&](index groups, gyre::operation what) {
    planner b;
    const weight<float, planner::prepared<float>> w{{nullptr, out, in}, nullptr};
    const matrix_view<const float> x(nullptr, rows, in), dy(nullptr, rows, out);
    const matrix_view<float> y(nullptr, rows, out), dx(nullptr, rows, in), dw(nullptr, out, in);
    const row_groups g{nullptr, groups, out * in};  // nobody knows the offsets yet
    b.grouped_product(x, w, g, y, false);
    b.grouped_product_input_gradient(dy, w, g, dx, false);
    b.grouped_product_weight_gradient(dy, x, g, dw);
    CHECK(b.total().calls == 3);
    return b.costs[static_cast<std::size_t>(what)];
  };
  for (const auto what : {gyre::operation::grouped_product, gyre::operation::grouped_product_input_gradient,
                          gyre::operation::grouped_product_weight_gradient})
    for (const index groups : {3, 4096}) {
      const gyre::operation_cost c = cost(groups, what);
      CHECK(c.product_flops == 2.0 * out * in * rows);
      CHECK(c.elementwise_flops == 0);
      CHECK(c.bytes == 4.0 * static_cast<double>(rows * out + rows * in + std::min(groups, rows) * out * in));
    }
}

}  // namespace gyre_test
