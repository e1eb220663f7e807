// Trials in safetensors files: operands and results of both sides, so that a foreign kernel or a Python reference can be compared.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <gyre/io/files.hpp>
#include <gyre/io/safetensors.hpp>
#include <gyre/io/safetensors_writer.hpp>
#include <gyre/parity/suite.hpp>

GYRE_BEGIN
namespace parity {
namespace detail {

/// Collects the operands of a call, those that only the host reads among them.
class collector : public placed<reference> {
 public:
  explicit collector(reference& device) : placed<reference>(device, {}) {}
  std::vector<tensor> of_host;

  template <class X>
  std::span<const X> host(std::string_view name, std::span<const X> x) {
    if constexpr (std::is_arithmetic_v<X>)  // what else there is, is described
      of_host.push_back(copy_of<X>(name, access::input, {x.data(), 1, static_cast<index>(x.size())}));
    return x;
  }
  template <class T>
  const T* host(std::string_view name, const T* x, index count) {
    of_host.push_back(copy_of<T>(name, access::input, {x, 1, count}));
    return x;
  }
};

/// What an argument that is no operand says, for the file's metadata; empty for operands.
template <class A>
std::string described(const A& x) {
  std::ostringstream text;
  text.precision(17);
  if constexpr (std::is_arithmetic_v<A>) {
    text << x;
  } else if constexpr (std::is_same_v<A, attention_shape>) {
    text << "heads " << x.heads << ", kv_heads " << x.kv_heads << ", width " << x.width << ", scale " << x.scale;
  } else if constexpr (std::is_same_v<A, rotary_shape>) {
    text << "heads " << x.heads << ", width " << x.width << ", " << (x.pairs == pairing::adjacent ? "adjacent" : "half_split");
  } else if constexpr (std::is_same_v<A, router_loss_weights>) {
    text << "balance " << x.balance << ", z " << x.z;
  } else if constexpr (std::is_same_v<A, std::reference_wrapper<const batch_layout>>) {
    for (const sequence_span& s : x.get().sequences())
      text << s.count << " tokens after " << s.past << " key " << s.key << "; ";
  } else if constexpr (std::is_same_v<A, std::span<const sampling_row>>) {
    for (const sampling_row& row : x) {
      const sampling& r = row.rules;
      text << "temperature " << r.temperature << ", top_k " << r.top_k << ", top_p " << r.top_p << ", min_p " << r.min_p
           << ", repetition_penalty " << r.repetition_penalty << ", greedy " << r.greedy << ", uniform " << row.uniform
           << ", history " << row.history << " + " << row.history_size << ", id_only " << row.id_only << "; ";
    }
  }
  return text.str();
}

/// Names that occur twice (lanes of a cache) get numbers.
inline std::string unique(std::map<std::string, int>& seen, const std::string& name) {
  const int n = seen[name]++;
  return n == 0 ? name : name + "." + std::to_string(n);
}

template <class T>
void add_source(std::vector<tensor_source>& sources, std::string name, index rows, index cols, const T* data) {
  sources.emplace_back(std::move(name), std::vector<index>{rows, cols}, data);
}

}  // namespace detail

/// Writes a trial: tensors input.* (what is updated among them, as it was before), left.*, right.*, exact.* and tolerance.* (F64),
/// all as matrices; the other arguments are in the metadata.
template <operation Op, class T, class L, class R>
void write_trial(L& left, R& right, const trial& t, const std::filesystem::path& path) {
  bench<T> b(t);
  const auto arguments = setting<Op>::arguments(b);
  std::map<std::string, std::string> metadata{{"trial", t.text()}};
  std::vector<tensor> inputs, outputs[2];
  std::vector<expectation> expected;
  std::apply(
      [&](const auto&... a) {
        reference device;
        detail::collector memory(device);
        signature<Op>::map(memory, a...);
        for (auto& operand : memory.operands())
          if (operand.contents().how != access::output) inputs.push_back(operand.contents());
        for (tensor& x : memory.of_host) inputs.push_back(std::move(x));
        int number = 0;
        const auto describe = [&](const std::string& text) {
          if (!text.empty()) metadata["argument " + std::to_string(number)] = text;
          ++number;
        };
        (describe(detail::described(a)), ...);
        outputs[0] = detail::run_once<Op>(left, placement{}, a...).outputs;
        outputs[1] = detail::run_once<Op>(right, placement{}, a...).outputs;
        expected = detail::expect<Op>(a...);
      },
      arguments);
  std::vector<tensor_source> sources;
  const auto add = [&](const char* prefix, const std::vector<tensor>& tensors) {
    std::map<std::string, int> seen;
    for (const tensor& x : tensors)
      sources.emplace_back(prefix + detail::unique(seen, x.name), x.type, std::vector<index>{x.rows, x.cols}, x.bytes.data());
  };
  add("input.", inputs), add("left.", outputs[0]), add("right.", outputs[1]);
  std::vector<std::vector<double>> numbers;
  numbers.reserve(2 * expected.size());
  std::map<std::string, int> seen;
  for (const expectation& e : expected) {
    const std::string name = detail::unique(seen, e.name);
    numbers.emplace_back(e.values.begin(), e.values.end());
    detail::add_source(sources, "exact." + name, e.rows, e.cols, numbers.back().data());
    numbers.emplace_back(e.tolerances.begin(), e.tolerances.end());
    detail::add_source(sources, "tolerance." + name, e.rows, e.cols, numbers.back().data());
  }
  write_file(path, safetensors_bytes(sources, metadata));
}

/// Compares results in a file, tensors "output.*" in the types and shapes of write_trial's left.*, with what the trial should give.
/// The report shows them on both sides. Throws gyre::error for a tensor that is missing or has another type or shape.
template <operation Op, class T>
report compare_file(const trial& t, const std::filesystem::path& path) {
  bench<T> b(t);
  const safetensors_reader file(path);
  report r;
  r.subject = std::string(operation_names[static_cast<std::size_t>(Op)]) + " from " + path.string();
  r.trial = t.text();
  std::apply(
      [&](const auto&... a) {
        reference device;
        std::vector<tensor> outputs = detail::run_once<Op>(device, placement{}, a...).outputs;  // their types and shapes
        std::map<std::string, int> seen;
        for (tensor& x : outputs) {
          const std::string name = "output." + detail::unique(seen, x.name);
          const stored_tensor& stored = file.at(name);
          require(stored.type == x.type && stored.shape == std::vector<index>{x.rows, x.cols}, "parity: ", path.string(), ": ",
                  name, " should be ", gyre::detail::shape_text(x.type, std::vector<index>{x.rows, x.cols}), ", not ",
                  gyre::detail::shape_text(stored.type, stored.shape));
          file.read_bytes(stored, x.bytes);
        }
        detail::compare_values(r, outputs, outputs, detail::expect<Op>(a...));
      },
      setting<Op>::arguments(b));
  return r;
}

/// Files of the trials of one operation.
struct trial_files {
  operation of = operation::count;
  std::string type;
  std::function<void(const trial&, const std::filesystem::path&)> write;
  std::function<report(const trial&, const std::filesystem::path&)> compare;
};

namespace detail {

template <class T, class L, class R, std::size_t... Op>
std::vector<trial_files> files_of(L& left, R& right, std::index_sequence<Op...>) {
  std::vector<trial_files> all;
  const auto add = [&]<operation Which>() {
    if constexpr (has_trials<Which, T>)
      all.push_back({Which, std::string(type_name<T>()),
                     [&](const trial& t, const std::filesystem::path& path) { write_trial<Which, T>(left, right, t, path); },
                     [](const trial& t, const std::filesystem::path& path) { return compare_file<Which, T>(t, path); }});
  };
  (add.template operator()<static_cast<operation>(Op)>(), ...);
  return all;
}

}  // namespace detail

/// For every operation that has trials; backends must outlive them.
template <class T, class L, class R>
std::vector<trial_files> all_files(L& left, R& right) {
  return detail::files_of<T>(left, right, std::make_index_sequence<static_cast<std::size_t>(operation::count)>());
}

}  // namespace parity
GYRE_END
