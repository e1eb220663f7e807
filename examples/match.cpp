// Finds mixtures that cost the same: match --help.
#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "support/arguments.hpp"
#include "support/mixture_text.hpp"
#include "support/terminal.hpp"

namespace {

using namespace examples;

constexpr const char* purpose =
    R"(Finds one recurrent layer (DR), and one with depth attention (DR+DA), that cost what a layered mixture of experts
costs: parameters, forward FLOPs a token, and the cache of inference.

  match                      the models of about 1 B parameters, 16 deep
  match --target 2b          of about 2 B, 32 deep
  match --width 64 --depth 8 --vocab 72 --context 48 --head-width 16 --heads 4 --kv-heads 1 --depth-kv-heads 1
        --router-width 16 --experts 8 --active 2 --expert-width 128 --shared-width 128 --tolerance 2.1
                             a family to train in minutes; of its short context the depth cache is a 48th

Standard output is C++: the table as a comment, then the three configurations. Ctrl-C prints the best found so far.)";

/// The search for one model of several: a line of progress with the time that is left, and Ctrl-C.
class search_progress {
 public:
  explicit search_progress(int searches) : searches_(searches) {}

  gyre::matching<gyre::model_sizes> run(const mixture_family& family, bool depth_attention, const std::string& name,
                                        gyre::matching_options options) {
    options.observe = [&](const gyre::matching_progress& p) {
      // A descent looks through all pairs at least once more than it improves; those that ended tell how often that is.
      const double here = static_cast<double>(p.candidates),
                   of_one = p.start == 0 ? 2.0 * static_cast<double>(p.cycle) : here / p.start;
      const double later = of_one * (p.starts - 1 - p.start + static_cast<double>(searches_ - 1 - done_) * p.starts);
      const double left = static_cast<double>(p.least_left) + later, all = before_ + here + left;
      show_.show((before_ + here) / all, name + ": start " + std::to_string(p.start + 1) + "/" + std::to_string(p.starts) +
                                             ", " + with_unit(here) + " candidates, off by " +
                                             number_text(100 * p.best, "%.3f%%") + ", left " +
                                             clock_text(watch_.seconds() * left / (before_ + here)));
      return !interrupt_guard::requested();
    };
    auto found = match_member(family, depth_attention, options);
    ++done_, before_ += static_cast<double>(found.candidates);
    return found;
  }

 private:
  int searches_, done_ = 0;
  double before_ = 0;  // candidates of searches that have ended
  stopwatch watch_;
  progress show_;
};

/// A size from the command line: from `least` to a million, which no machine has.
void read_size(arguments& given, const char* name, gyre::index& value, gyre::index least, const char* help,
               gyre::index multiple_of = 1) {
  value = given.number(name, value, help);
  gyre::require(value >= least && value <= 1'000'000, "match: --", name, " is ", value, "; it lies in [", least, ", 1000000]");
  gyre::require(value % multiple_of == 0, "match: --", name, " is ", value,
                "; depth encodings turn two halves of pairs, so it is a "
                "multiple of ",
                multiple_of);
}

int match(int count, char** values) {
  arguments given(count, values, purpose);
  const std::string target = given.choice("target", {"1b", "2b"}, "1b", "sizes that the options below change");
  mixture_family family = mixture_family::of(target == "1b" ? 16 : 32);
  gyre::model_sizes& s = family.layered;
  given.heading("All models:");
  read_size(given, "depth", s.depth, 1, "layers that a token passes");
  read_size(given, "width", s.width, 1, "hidden size");
  read_size(given, "vocab", s.vocab, 1, "tokens in the vocabulary");
  read_size(given, "context", s.context, 1, "tokens in a sequence");
  read_size(given, "head-width", s.head_width, 4, "of both attentions", 4);
  read_size(given, "heads", s.heads, 1, "query heads of sequence attention");
  read_size(given, "kv-heads", s.kv_heads, 1, "its key/value heads");
  read_size(given, "router-width", s.router_width, 4, "of the keys of experts", 4);
  const std::string form = given.choice("form", {"sequential", "parallel_2", "parallel_3"}, "sequential",
                                        "how the branches of a layer follow each other");
  const std::string norms = given.choice("norms", {"branch_sandwich", "pre_norm"}, "branch_sandwich", "of the branches");
  s.state_norm = given.flag("state-norm", "the state is normalised after each layer as well");
  given.heading("The layered model, which the others are matched to:");
  read_size(given, "experts", s.experts, 1, "of a layer");
  read_size(given, "active", s.active, 1, "experts that a token uses");
  read_size(given, "expert-width", s.expert_width, 1, "inner width of an expert");
  read_size(given, "shared-width", s.shared_width, 0, "inner width of the expert that always runs; 0: there is none");
  given.heading("DR and DR+DA:");
  read_size(given, "active-projections", family.active_projections, 1, "matrices that a token mixes in a projection");
  read_size(given, "depth-heads", family.depth_heads, 1, "query heads of depth attention");
  read_size(given, "depth-kv-heads", family.depth_kv_heads, 1, "its key/value heads");
  given.heading("The search:");
  read_size(given, "width-step", family.width_step, 0, "inner widths are its multiples; 0: chosen by their size");
  gyre::matching_options options{.starts = given.number("starts", 16, "descents, the first from the layered sizes")};
  options.seed.value = given.number("seed", options.seed.value, "of the other starts");
  const double tolerance = given.number("tolerance", 0.3, "most percent that a quantity may be off");
  if (!given.ready()) return 0;
  gyre::require(options.starts >= 1 && options.starts <= 10000, "match: --starts is ", options.starts,
                "; it lies in [1, 10000]");
  gyre::require(tolerance >= 0, "match: --tolerance is ", tolerance, "; it must not be negative");
  s.layers = s.depth;
  s.form = form == "sequential"   ? gyre::mixture_form::sequential
           : form == "parallel_2" ? gyre::mixture_form::parallel_2
                                  : gyre::mixture_form::parallel_3;
  s.norms = norms == "pre_norm" ? gyre::branch_norms::pre_norm : gyre::branch_norms::branch_sandwich;
  family.validate();

  const interrupt_guard guard;
  std::vector<family_member> members{member_of(family, "layered", family.layered)};
  bool stopped = false;
  {
    search_progress searching(2);
    for (const bool depth_attention : {false, true}) {
      const std::string name = depth_attention ? "DR+DA" : "DR";
      const auto found = searching.run(family, depth_attention, name, options);
      stopped = found.cancelled;
      if (found.objective < 1e300) members.push_back(member_of(family, name, found.sizes));
      if (stopped) break;
    }
  }
  std::cout << family_table(members, "// ") << '\n';
  for (const family_member& m : members) {
    std::string name = m.name == "DR+DA" ? "dr_da" : m.name == "DR" ? "dr" : m.name;
    std::cout << configuration(m.sizes, name + "_" + std::to_string(m.sizes.depth)) << '\n';
  }
  if (stopped) {
    std::cerr << "stopped: there may be better ones\n";
    return 0;
  }
  for (const family_member& m : members)
    gyre::require(100 * m.worst() <= tolerance, "match: ", m.name, " is off by ", number_text(100 * m.worst(), "%.3g"),
                  "%, more than --tolerance ", tolerance,
                  "; a smaller --width-step, more --starts or other layered sizes may come closer");
  return 0;
}

}  // namespace

int main(int count, char** values) {
  return examples::guarded(count, values, [&] { return match(count, values); });
}
