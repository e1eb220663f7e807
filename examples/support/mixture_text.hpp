// A matched family as text: the table of what its models cost, and their configurations in C++.
#pragma once

#include <cstdio>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gyre/model/activation_memory.hpp>

#include "mixture_family.hpp"

namespace examples {

/// A number in a format of printf.
inline std::string number_text(double value, const char* format) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}
/// 1051234567 as "1.051 G".
inline std::string with_unit(double value) {
  for (const auto& [unit, letter] : {std::pair{1e12, 'T'}, {1e9, 'G'}, {1e6, 'M'}, {1e3, 'k'}})
    if (value >= unit) {
      std::string text = number_text(value / unit, "%#.4g");
      if (text.back() == '.') text.pop_back();
      return text + ' ' + letter;
    }
  return number_text(value, "%.0f");
}
/// 0.00021 as "+0.021%".
inline std::string percent_text(double ratio) { return number_text(100 * ratio, "%+.3f%%"); }

/// Lines of columns, each as wide as its longest entry; the first column to the left.
inline std::string aligned(const std::vector<std::vector<std::string>>& lines, const std::string& before) {
  std::vector<std::size_t> widths;
  for (const auto& line : lines)
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (i == widths.size()) widths.push_back(0);
      widths[i] = (std::max)(widths[i], line[i].size());
    }
  std::string text;
  for (const auto& line : lines) {
    text += before;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::string space(widths[i] - line[i].size(), ' ');
      text += i == 0 ? line[i] + space : "  " + space + line[i];
    }
    while (text.back() == ' ') text.pop_back();
    text += '\n';
  }
  return text;
}

/// The table; each line begins with `before`.
inline std::string family_table(const std::vector<family_member>& family, const std::string& before) {
  std::vector<std::vector<std::string>> lines{{"model", "experts", "active", "width", "shared", "projections", "parameters", "",
                                               "FLOP/token", "", "training", "cache", "", "tape B/token"}};
  for (const family_member& m : family) {
    const gyre::model_sizes& s = m.sizes;
    const bool layered = &m == &family.front();
    const auto off = [&](double ratio) { return layered ? std::string() : percent_text(ratio); };
    const auto count = [](gyre::index n) { return std::to_string(n); };
    lines.push_back({m.name, count(s.experts) + (s.layers > 1 ? " x " + count(s.layers) : ""), count(s.active),
                     count(s.expert_width), count(s.shared_width),
                     s.projection_experts == 1 ? "1" : count(s.active_projections) + " of " + count(s.projection_experts),
                     with_unit(m.quantities.parameters), off(m.off.parameters), with_unit(m.quantities.flops), off(m.off.flops),
                     with_unit(static_cast<double>(m.cost.forward() + m.cost.backward())), with_unit(m.quantities.memory),
                     off(m.off.memory),
                     with_unit(static_cast<double>(gyre::activation_bytes(s, s.context)) / static_cast<double>(s.context))});
  }
  return aligned(lines, before);
}

/// A member of the family as types named after `name`: an identifier. The program that the text is put in includes gyre/gyre.hpp.
inline std::string configuration(const gyre::model_sizes& s, const std::string& name) {
  std::ostringstream out;
  const auto constant = [&](const char* type, const std::string& what) -> std::ostream& {
    return out << "inline constexpr gyre::" << type << ' ' << name << '_' << what;
  };
  const auto dims = [&](const std::string& what, gyre::index heads, gyre::index kv_heads) {
    constant("dims", what) << "{.vocab = " << s.vocab << ", .width = " << s.width << ", .heads = " << heads
                           << ", .kv_heads = " << kv_heads << ", .head_width = " << s.head_width
                           << ",\n    .mlp = " << (s.experts > 0 ? s.expert_width : s.shared_width)
                           << ", .context = " << s.context << ", .mean_steps = " << (s.layers == 1 ? s.depth : 1)
                           << ", .rope_base = 10000};\n";
  };
  const bool mixed = s.projection_experts > 1;
  const auto rules = [&](const char* type, const std::string& what, const std::string& others) {
    constant(type, what) << '{';
    if (mixed)
      out << ".projections = {.count = " << s.projection_experts << ", .active = " << s.active_projections
          << ", .router_width = " << s.router_width << "},\n    ";
    out << others << ".query_key_norm = " << (s.query_key_norm ? "true" : "false") << "};\n";
  };
  dims("sizes", s.heads, s.kv_heads);
  if (s.depth_heads > 0) dims("depth_sizes", s.depth_heads, s.depth_kv_heads);
  if (s.depth_heads > 0) rules("depth_attention_options", "depth", s.exclusive_depth ? ".exclusive = true, " : "");
  if (s.heads > 0) rules("attention_options", "sequence", ".query_key_bias = false, ");
  if (s.experts > 0)
    constant("experts", "experts") << "{.count = " << s.experts << ", .active = " << s.active << ", .width = " << s.expert_width
                                   << ",\n    .shared_width = " << s.shared_width << ", .router_width = " << s.router_width
                                   << "};\n";

  std::string form = s.form == gyre::mixture_form::sequential   ? "gyre::sequential"
                     : s.form == gyre::mixture_form::parallel_3 ? "gyre::parallel_3"
                                                                : "gyre::parallel_2";
  const bool pre_norm = s.norms == gyre::branch_norms::pre_norm;
  if (pre_norm || s.state_norm)
    form = "gyre::with_norms<" + form + ", gyre::" + (pre_norm ? "pre_norm" : "branch_sandwich") +
           (s.state_norm ? ", gyre::state_norm::yes>" : ">");
  out << "struct " << name << "_layer : gyre::mixture<" << form;
  const std::string sizes = '<' + name + "_sizes";
  if (s.depth_heads > 0) out << ",\n    gyre::depth_attention<" << name << "_depth_sizes, " << name << "_depth>";
  if (s.heads > 0) out << ",\n    gyre::sequence_attention" << sizes << ", " << name << "_sequence>";
  if (s.experts > 0 && s.shared_width > 0)
    out << ",\n    gyre::expert_attention" << sizes << ", " << name << "_experts>";
  else if (s.experts > 0)
    out << ",\n    gyre::expert_attention" << sizes << ", " << name << "_experts, gyre::gated_mlp" << sizes
        << ">, gyre::no_shared_expert>";
  else
    out << ",\n    gyre::gated_mlp" << sizes << '>';
  out << "> {};\n";
  out << "struct " << name << " : gyre::mixture_model" << sizes << ", "
      << (s.layers == 1 ? name + "_layer" : "gyre::stack<" + std::to_string(s.layers) + ", " + name + "_layer>") << "> {};  // "
      << (s.layers == 1 ? s.depth : 1) << (s.layers == 1 && s.depth > 1 ? " steps\n" : " step\n");
  out << "static_assert(gyre::cost<" << name << ">(" << s.depth << ").parameters() == " << gyre::cost_of(s).parameters()
      << ");\n";
  return out.str();
}

}  // namespace examples
