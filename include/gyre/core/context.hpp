// What a pass through the layers carries along: the backend, the memory, the rows, and where in the recurrence it is.
#pragma once

#include <span>
#include <vector>

#include <gyre/core/arena.hpp>
#include <gyre/core/layout.hpp>
#include <gyre/core/parameters.hpp>
#include <gyre/core/pass_observer.hpp>
#include <gyre/core/precision.hpp>
#include <gyre/ops/shapes.hpp>

GYRE_BEGIN

template <class P>
using parameter_t = typename P::parameter;
template <class P>
using activation_t = typename P::activation;
template <class P>
using gradient_t = typename P::gradient;
template <class P>
using statistic_t = typename P::statistic;

/// A weight matrix as a product sees it: where it lies in the flat buffer, and what the backend prepared from it (packed
/// copies), or null.
template <class T, class Prepared>
struct weight_matrix {
  matrix_view<const T> raw;  // (out, in)
  const Prepared* prepared = nullptr;
};

/// The parameters of a layer: a place in the flat buffer. Layers move it on to their parts with `+`.
template <class B, class P>
struct weights {
  using scalar = parameter_t<P>;
  using prepared_type = typename B::template prepared<scalar>;
  const scalar* data = nullptr;
  const prepared_type* prepared = nullptr;
  index place = 0;  // of `data` in the flat buffer: what a report names a layer by

  weights operator+(index offset) const { return {data + offset, prepared, place + offset}; }
  weight_matrix<scalar, prepared_type> matrix(index out, index in) const { return {{data, out, in, in}, prepared}; }
  /// Columns [first, first + count) of an (out, in) matrix: one block of a fused matrix.
  weight_matrix<scalar, prepared_type> matrix_columns(index out, index in, index first, index count) const {
    return {{data + first, out, count, in}, prepared};
  }
};

/// The parameters of several layers alike, each of which takes a group of the rows: `first` are those of the first group's layer.
/// A type of its own, so that a model without such layers compiles no grouped products.
template <class B, class P>
struct group_weights {
  weights<B, P> first;
  row_groups groups;

  group_weights operator+(index offset) const { return {first + offset, groups}; }
  auto matrix(index out, index in) const { return first.matrix(out, in); }
};

/// Cosines and sines of every rotary encoding that a model uses. Filled once, then only read: angles are computed in double and
/// stored in the scalar of statistics.
template <class T>
struct rotary_tables {
  struct table {
    rotary_spec spec;
    const T* data = nullptr;  // (spec.length, spec.width / 2, 2): cosine, sine
  };
  std::vector<table> all;

  const T* find(rotary_spec spec) const {
    for (const table& t : all)
      if (t.spec == spec) return t.data;
    fail("rotary_tables: no table of base ", spec.base, ", head width ", spec.width, ", ", spec.length, " positions");
  }
};

/// Where one sequence keeps the keys and values of its past. Memory of a layer that caches `u` scalars a token (keys, then
/// values) begins at `base + cursor * capacity`, cursor being the sum of `u` over the layers executed before it: a slot for
/// every executed layer.
template <class T>
struct cache_lane {
  T* base = nullptr;
  index capacity = 0;                       // tokens
  const std::int32_t* steps_run = nullptr;  // (tokens), the host's: with lookup `skip`, steps each past token ran; else null
};

template <class B, class P>
struct context {
  using backend_type = B;
  using precision_type = P;
  using scalar = activation_t<P>;

  B& device;
  arena& tape;            // activations that backward reads
  arena& scratch;         // everything else
  record_stack& records;  // host records that point into the tape
  const batch_layout& layout;
  const rotary_tables<statistic_t<P>>& tables;
  bool keep = true;           // whether a backward pass will follow: without one, a layer's tape is given back when it ends
  int step = -1;              // step of the recurrence that is running, from 0; -1 outside the loop
  int steps = 0;              // steps asked for in this call
  bool step_matters = false;  // some layer's result depends on `step`
  bool steps_matter = false;  // some layer's result depends on `steps`
  std::span<const cache_lane<scalar>> lanes{};  // one for each sequence of the layout; empty when nothing is cached
  index cache_cursor = 0;                       // scalars a token, of the layers executed so far
  statistic_t<P>* auxiliary_loss = nullptr;  // (1) of the device: layers add their own losses in this pass; null: nobody asks
  statistic_t<P> loss_scale{};               // of the gradient, in backward
  pass_observer<P>* observer = nullptr;      // hears of what layers do
};

/// Around one layer of several: gives its tape back at once when no backward pass will read it.
template <class B, class P>
class passing_frame {
 public:
  explicit passing_frame(context<B, P>& c) : context_(c), tape_(c.tape.mark()), records_(c.records.mark()) {}
  ~passing_frame() {
    if (!context_.keep) context_.tape.release(tape_), context_.records.release(records_);
  }
  passing_frame(const passing_frame&) = delete;
  passing_frame& operator=(const passing_frame&) = delete;

 private:
  context<B, P>& context_;
  std::size_t tape_;
  record_stack::position records_;
};

GYRE_END
