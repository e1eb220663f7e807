// A saved checkpoint, to look into and to break.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <gyre/train/checkpoint.hpp>
#include <gyre/train/weights.hpp>

#include "io/faulty_files.hpp"
#include "io/support.hpp"
#include "train/support.hpp"

namespace gyre_test {

inline constexpr gyre::fixed_depth depth{.steps = 2};
using network = reference_network<Tiny, gyre::fp32>;
using adamw_trainer = gyre::trainer<network, gyre::adamw, gyre::fixed_depth>;

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// One saved step to break.
struct saved {
  scratch_folder folder;
  network net{gyre::reference{}, gyre::seed{1}};
  adamw_trainer train{net, gyre::adamw{}, depth};
  std::filesystem::path path;

  saved() {
    train.step(random_rows(2, 4).all());
    path = gyre::save_checkpoint(train, folder / "run", gyre::json("anything"), unsynced_files());
  }
  std::string loading_into_another() const {
    network other(gyre::reference{}, gyre::seed{2});
    adamw_trainer to(other, gyre::adamw{}, depth);
    const auto before = copy_of(other);
    const std::string text = error_text([&] { gyre::load_checkpoint(to, path); });
    if (text != "no error") {
      CHECK((copy_of(other) == before));  // all or nothing
      CHECK(to.steps() == 0);
    }
    return text;
  }
  void replace_in_state(const std::string& what, const std::string& by) const {
    std::string text = gyre::read_file(path / "state.json");
    const std::size_t at = text.find(what);
    REQUIRE(at != std::string::npos);
    gyre::write_file(path / "state.json", text.replace(at, what.size(), by));
  }
  // Writes a file of tensors again after `change` has had its way with the list.
  void rewrite(const std::string& name, const std::function<void(std::vector<gyre::tensor_source>&)>& change) const {
    std::vector<gyre::tensor_source> tensors =
        name == "model.safetensors" ? gyre::detail::weight_tensors(net) : gyre::detail::moment_tensors(train);
    change(tensors);
    gyre::write_file(path / name, gyre::safetensors_bytes(tensors));
  }
};

}  // namespace gyre_test
