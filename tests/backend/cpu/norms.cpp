// Norms and loss against the reference in long double. [own_unit]
#include <catch2/catch.hpp>

#include <gyre/backend/cpu.hpp>
#include <gyre/backend/reference.hpp>

#include "support.hpp"
#include "support/compare.hpp"

namespace gyre_test {  // at global scope POSIX has an `index` of its own
namespace {

using gyre::cpu;
using gyre::reference;
using gyre::token;
using exact = long double;

constexpr index row_counts[] = {0, 1, 7, 129}, widths[] = {1, 3, 40, 64, 256};
constexpr double eps = 1e-6;

template <class T>
exact sum_error(index terms) {
  return 2 * static_cast<exact>(terms) * epsilon<T>;
}

TEMPLATE_TEST_CASE("rms_norm and add_rms_norm, out of place and in place", "", float, double) {
  using T = TestType;
  for (const index rows : row_counts)
    for (const index cols : widths)
      for (const bool with_gain : {false, true}) {
        CAPTURE(rows, cols, with_gain);
        cpu b(2);
        const auto x = random_grid<T>(rows, cols, 1), f = random_grid<T>(rows, cols, 2), gain = random_grid<T>(1, cols, 3);
        const auto gain_exact = gain.template as<exact>();
        const T* g = with_gain ? gain.data() : nullptr;
        const exact* ge = with_gain ? gain_exact.data() : nullptr;
        const auto close = [&](grid<T>& y, grid<T>& rstd, grid<exact>& y_want, grid<exact>& rstd_want) {
          CHECK(differences(y.read(), y_want.view(), [&](index i, index j) {
                  return (sum_error<T>(cols) + 8 * epsilon<T>)*std::fabs(y_want[i][j]);
                }) == "");
          CHECK(differences(rstd.read(), rstd_want.view(),
                            [&](index i, index j) { return (sum_error<T>(cols) + 8 * epsilon<T>)*rstd_want[i][j]; }) == "");
          CHECK(y.margins_intact());
          CHECK(rstd.margins_intact());
        };
        grid<T> y(rows, cols), rstd(rows, 1, 0), total(rows, cols);
        grid<exact> y_want(rows, cols), rstd_want(rows, 1, 0), total_want(rows, cols);
        b.rms_norm(x.read(), g, eps, y.view(), rstd.data());
        reference().rms_norm(x.template as<exact>().read(), ge, eps, y_want.view(), rstd_want.data());
        close(y, rstd, y_want, rstd_want);
        auto in_place = x;
        b.rms_norm(in_place.read(), g, eps, in_place.view(), rstd.data());
        CHECK(bit_differences(in_place.view(), y.view()) == "");

        // The exact norm of the rounded sum: its rounding is the sum's, not the norm's.
        b.add_rms_norm(x.read(), f.read(), g, eps, total.view(), y.view(), rstd.data());
        for (index i = 0; i < rows; ++i)
          for (index j = 0; j < cols; ++j) total_want[i][j] = static_cast<T>(x[i][j] + f[i][j]);
        reference().rms_norm(total_want.read(), ge, eps, y_want.view(), rstd_want.data());
        close(y, rstd, y_want, rstd_want);
        CHECK(differences(total.read(), total_want.view(), 0) == "");
        grid<T> y_again(rows, cols);
        auto into_x = x, into_f = f;
        b.add_rms_norm(into_x.read(), f.read(), g, eps, into_x.view(), y_again.view(), rstd.data());
        CHECK(bit_differences(into_x.view(), total.view()) == "");
        CHECK(bit_differences(y_again.view(), y.view()) == "");
        b.add_rms_norm(x.read(), into_f.read(), g, eps, into_f.view(), y_again.view(), rstd.data());
        CHECK(bit_differences(into_f.view(), total.view()) == "");
        CHECK(bit_differences(y_again.view(), y.view()) == "");
      }
}

TEMPLATE_TEST_CASE("the gradient of rms_norm accumulates into dx and dgain", "", float, double) {
  using T = TestType;
  for (const index rows : row_counts)
    for (const index cols : widths)
      for (const bool with_gain : {false, true})
        for (const bool with_dgain : {false, true}) {
          CAPTURE(rows, cols, with_gain, with_dgain);
          cpu b(2);
          const auto x = random_grid<T>(rows, cols, 4), dy = random_grid<T>(rows, cols, 5), gain = random_grid<T>(1, cols, 6);
          auto dx = random_grid<T>(rows, cols, 7), dgain = random_grid<T>(1, cols, 8), rstd = random_grid<T>(rows, 1, 9, 1, 0);
          const auto dx_before = dx.template as<exact>();
          auto dx_want = dx_before, dgain_want = dgain.template as<exact>(), dgain_size = dgain.absolute().template as<exact>();
          const auto x_exact = x.template as<exact>(), dy_exact = dy.template as<exact>(),
                     gain_exact = gain.template as<exact>();
          const auto rstd_exact = rstd.template as<exact>();
          grid<T> workspace(1, with_dgain ? cpu::rms_norm_backward_workspace(rows, cols) : 0);
          b.rms_norm_backward(x.read(), with_gain ? gain.data() : nullptr, static_cast<const T*>(rstd.data()), dy.read(),
                              dx.view(), with_dgain ? dgain.data() : nullptr, workspace.data());
          reference().rms_norm_backward(x_exact.read(), with_gain ? gain_exact.data() : nullptr,
                                        static_cast<const exact*>(rstd_exact.data()), dy_exact.read(), dx_want.view(),
                                        with_dgain ? dgain_want.data() : nullptr, static_cast<exact*>(nullptr));
          const auto weight = [&](index j) { return with_gain ? std::fabs(gain_exact[0][j]) : exact(1); };
          std::vector<exact> dots;  // of absolute values, for each row
          for (index i = 0; i < rows; ++i) {
            exact dot = 0;
            for (index j = 0; j < cols; ++j) {
              const exact product = std::fabs(dy_exact[i][j] * x_exact[i][j] * rstd_exact[i][0]);
              dot += product * weight(j);
              dgain_size[0][j] += product;
            }
            dots.push_back(dot / static_cast<exact>(cols));
          }
          CHECK(differences(dx.read(), dx_want.view(), [&](index i, index j) {
                  const exact r = std::fabs(rstd_exact[i][0]);
                  const exact gradient = r * std::fabs(dy_exact[i][j]) * weight(j);
                  const exact projection = r * r * std::fabs(x_exact[i][j]) * dots[static_cast<std::size_t>(i)];
                  return 8 * epsilon<T> * (std::fabs(dx_before[i][j]) + gradient) +
                         (sum_error<T>(cols) + 8 * epsilon<T>)*projection;
                }) == "");
          CHECK(differences(dgain.read(), dgain_want.view(),
                            [&](index i, index j) { return sum_error<T>(rows + 1) * dgain_size[i][j]; }) == "");
          CHECK(dx.margins_intact());
          CHECK(dgain.margins_intact());
          CHECK(workspace.margins_intact());
        }
}

TEMPLATE_TEST_CASE("standardise and row_change", "", float, double) {
  using T = TestType;
  for (const index rows : row_counts)
    for (const index cols : {2, 40, 64, 129}) {
      CAPTURE(rows, cols);
      cpu b(2);
      const auto x = random_grid<T>(rows, cols, 10), before = random_grid<T>(rows, cols, 11);
      auto y = x;
      auto want = x.template as<exact>();
      b.standardise(y.view());
      reference().standardise(want.view());
      CHECK(differences(y.read(), want.view(), [&](index i, index) {
              // The mean's error, in units of the deviation; two columns may lie close together.
              exact size = 0, variance = 0, mean = 0;
              for (index j = 0; j < cols; ++j) size += std::fabs(x[i][j]), mean += x[i][j];
              mean /= static_cast<exact>(cols);
              for (index j = 0; j < cols; ++j) variance += (x[i][j] - mean) * (x[i][j] - mean);
              const exact deviation = std::sqrt(variance / static_cast<exact>(cols));
              return (sum_error<T>(cols) + 8 * epsilon<T>)*(size / static_cast<exact>(cols) / deviation + 4);
            }) == "");
      CHECK(y.margins_intact());

      grid<T> change(rows, 2, 0);
      grid<exact> change_want(rows, 2, 0);
      b.row_change(x.read(), before.read(), change.data());
      reference().row_change(x.template as<exact>().read(), before.template as<exact>().read(), change_want.data());
      CHECK(differences(change.read(), change_want.view(),
                        [&](index i, index j) { return (sum_error<T>(cols) + 8 * epsilon<T>)*change_want[i][j]; }) == "");
      CHECK(change.margins_intact());
    }
}

TEMPLATE_TEST_CASE("cross-entropy: losses, gradients, rows that do not count", "", float, double) {
  using T = TestType;
  for (const index rows : row_counts)
    for (const index vocabulary : {1, 5, 257, 4096})
      for (const bool gradient : {false, true})
        for (const double spread : {1.0, 50.0}) {
          CAPTURE(rows, vocabulary, gradient, spread);
          cpu b(2);
          auto z = random_grid<T>(rows, vocabulary, 12, spread);
          const auto before = z;
          const auto z_exact = z.template as<exact>();
          auto want = z.template as<exact>();
          std::vector<token> targets;
          for (index i = 0; i < rows; ++i) targets.push_back(i % 5 == 3 ? -1 : static_cast<token>((i * 31 + 7) % vocabulary));
          grid<T> losses(rows, 1, 0);
          grid<exact> losses_want(rows, 1, 0);
          const T scale = T(0.37);
          b.cross_entropy(z.view(), targets, scale, losses.data(), gradient);
          reference().cross_entropy(want.view(), std::span<const token>(targets), static_cast<exact>(scale), losses_want.data(),
                                    gradient);
          // exp(z - top) has the relative error of its argument, 1/2 eps |z - top|, and then of the sum.
          std::vector<exact> relative, size;
          for (index i = 0; i < rows; ++i) {
            exact low = z_exact[i][0], high = low;
            for (index j = 1; j < vocabulary; ++j) low = std::min(low, z_exact[i][j]), high = std::max(high, z_exact[i][j]);
            relative.push_back(sum_error<T>(vocabulary) + (8 + high - low) * epsilon<T>);
            size.push_back(std::max(high, -low));
          }
          const auto at = [](const std::vector<exact>& v, index i) { return v[static_cast<std::size_t>(i)]; };
          CHECK(differences(losses.read(), losses_want.view(),
                            [&](index i, index) { return at(relative, i) + 8 * epsilon<T> * (at(size, i) + 1); }) == "");
          if (gradient) {
            // Probabilities below the smallest exponential are 0.
            CHECK(differences(z.read(), want.view(), [&](index i, index) {
                    return exact(scale) * 2 * at(relative, i) + std::numeric_limits<T>::min();
                  }) == "");
            bool zero = true;
            for (index i = 0; i < rows; ++i)
              if (targets[static_cast<std::size_t>(i)] < 0) {
                zero = zero && losses[i][0] == 0;
                for (index j = 0; j < vocabulary; ++j) zero = zero && z[i][j] == 0;
              }
            CHECK(zero);
          } else {
            CHECK(bit_differences(z.view(), before.view()) == "");
          }
          CHECK(z.margins_intact());
        }
}

TEMPLATE_TEST_CASE("sums have one order", "", float, double) {
  using T = TestType;
  cpu b(2);
  for (const index count : {0, 1, 7, 4097}) {
    const auto x = random_grid<T>(1, count, 13);
    const auto x_exact = x.template as<exact>(), size = x.absolute().template as<exact>();
    exact want = -1, of_sizes = -1;
    reference().sum(static_cast<const exact*>(x_exact.data()), count, &want);
    reference().sum(static_cast<const exact*>(size.data()), count, &of_sizes);
    T found = -1;
    b.sum(static_cast<const T*>(x.data()), count, &found);
    CHECK(std::fabs(found - want) <= 2 * epsilon<T> * of_sizes);
  }
}

}  // namespace
}  // namespace gyre_test
