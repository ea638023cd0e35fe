#include "tests/pipeline/serial_reference.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>

namespace plenum::pipeline {

using schedule::Action;
using schedule::ActionType;
using schedule::Preconditioner;

namespace {

using Matrix = std::vector<Values>;

Matrix zeros(std::size_t n) {
  return Matrix(n, Values(n, 0.0));
}

Matrix square_of(const Values& flat, std::size_t n) {
  Matrix matrix = zeros(n);
  for (std::size_t i = 0; i < n * n; ++i) matrix[i / n][i % n] = flat[i];
  return matrix;
}

Values flat_of(const Matrix& matrix) {
  Values flat;
  for (const Values& row : matrix) flat.insert(flat.end(), row.begin(), row.end());
  return flat;
}

Matrix multiply(const Matrix& x, const Matrix& y) {
  Matrix result = zeros(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = 0; j < x.size(); ++j) {
      for (std::size_t k = 0; k < x.size(); ++k) result[i][j] += x[i][k] * y[k][j];
    }
  }
  return result;
}

Matrix transpose(const Matrix& x) {
  Matrix result = x;
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = 0; j < x.size(); ++j) result[i][j] = x[j][i];
  }
  return result;
}

Matrix with_diagonal(Matrix x, double value) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i][i] += value;
  return x;
}

double trace(const Matrix& x) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i][i];
  return sum;
}

/// By Cholesky: x = l l', then columns of the identity forwards and backwards.
Matrix inverse(const Matrix& x) {
  const std::size_t n = x.size();
  Matrix l = zeros(n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = x[i][j];
      for (std::size_t k = 0; k < j; ++k) sum -= l[i][k] * l[j][k];
      l[i][j] = i == j ? std::sqrt(sum) : sum / l[j][j];
    }
  }
  Matrix result = zeros(n);
  for (std::size_t column = 0; column < n; ++column) {
    Values y(n);
    for (std::size_t i = 0; i < n; ++i) {
      y[i] = i == column ? 1.0 : 0.0;
      for (std::size_t k = 0; k < i; ++k) y[i] -= l[i][k] * y[k];
      y[i] /= l[i][i];
    }
    for (std::size_t i = n; i-- > 0;) {
      for (std::size_t k = i + 1; k < n; ++k) y[i] -= l[k][i] * result[k][column];
      result[i][column] = y[i] / l[i][i];
    }
  }
  return result;
}

/// By Newton's iteration for pairs (Denman and Beavers): y goes to x^(1/2), z to x^(-1/2).
Matrix square_root(const Matrix& x) {
  Matrix y = x;
  Matrix z = with_diagonal(zeros(x.size()), 1.0);
  constexpr int kNumIterations = 30;
  for (int iteration = 0; iteration < kNumIterations; ++iteration) {
    const Matrix y_inverse = inverse(y);
    const Matrix z_inverse = inverse(z);
    for (std::size_t i = 0; i < x.size(); ++i) {
      for (std::size_t j = 0; j < x.size(); ++j) {
        y[i][j] = (y[i][j] + z_inverse[i][j]) / 2;
        z[i][j] = (z[i][j] + y_inverse[i][j]) / 2;
      }
    }
  }
  return y;
}

Matrix inverse_fourth_root_of(const Matrix& x) {
  return inverse(square_root(square_root(x)));
}

/// Accumulated second moments of a map's gradient.
struct Moments {
  Matrix left;
  Matrix right;
};

class SerialTraining {
 public:
  SerialTraining(const schedule::Schedule& schedule, std::uint64_t first_step)
      : schedule_(schedule),
        first_step_(first_step),
        problem_(schedule.problem),
        model_(toy_model_for(problem_)) {
    for (std::size_t stage = 0; stage < problem_.stage_layers.size(); ++stage) {
      for (std::size_t i = 0; i < problem_.stage_layers[stage]; ++i) stage_of_layer_.push_back(stage);
    }
    for (std::size_t layer = 0; layer < stage_of_layer_.size(); ++layer) {
      parameters_.push_back(toy_parameters(model_, problem_, layer));
      std::vector<Values>& momentum = momentum_.emplace_back();
      std::vector<Values>& values = result_.parameters.emplace_back();
      for (const ToyParameter& parameter : parameters_.back()) {
        values.push_back(parameter.initial);
        momentum.emplace_back(parameter.initial.size(), 0.0);
      }
      moments_.emplace_back(model_.maps_per_layer, Moments{zeros(model_.width), zeros(model_.width)});
    }
    if (problem_.preconditioner == Preconditioner::Kfac) find_curvature_scales();
  }

  SerialResult run(std::uint64_t num_steps) {
    for (std::uint64_t i = 0; i < num_steps; ++i) run_step(first_step_ + i);
    return std::move(result_);
  }

 private:
  void run_step(std::uint64_t step) {
    result_.losses.push_back(0);
    result_.curvature.emplace_back(
        parameters_.size(),
        std::vector<Values>(model_.maps_per_layer, Values(2 * model_.width * model_.width, 0.0)));
    result_.gradients = momentum_;
    for (std::vector<Values>& layer : result_.gradients) {
      for (Values& values : layer) values.assign(values.size(), 0.0);
    }
    for (std::size_t m = 0; m < problem_.num_micro_batches; ++m) {
      for (const ToyToken& token : toy_tokens(model_, problem_, step, m)) run_token(token, m);
    }
    tie();
    if (problem_.preconditioner == Preconditioner::Kfac) precondition(step);
    const double clipping = clipping_of_gradients();
    accumulate(step, clipping);
    if (problem_.preconditioner == Preconditioner::Shampoo) precondition(step);
    update(clipping);
  }

  Values& embedding_of(std::vector<std::vector<Values>>& of) { return of.front()[2 * model_.maps_per_layer]; }

  void run_token(const ToyToken& token, std::size_t micro_batch) {
    const std::size_t width = model_.width;
    const auto count = static_cast<double>(num_toy_tokens(problem_));
    Values h(
        embedding_of(result_.parameters).begin() + static_cast<std::ptrdiff_t>(token.input * width),
        embedding_of(result_.parameters).begin() + static_cast<std::ptrdiff_t>((token.input + 1) * width));
    std::vector<Values> inputs;
    std::vector<Values> outputs;
    for (const std::vector<Values>& layer : result_.parameters) {
      for (std::size_t map = 0; map < model_.maps_per_layer; ++map) {
        Values y = layer[2 * map + 1];
        for (std::size_t i = 0; i < width; ++i) {
          for (std::size_t j = 0; j < width; ++j) y[i] += layer[2 * map][i * width + j] * h[j];
          y[i] = std::tanh(y[i]);
        }
        inputs.push_back(h);
        for (std::size_t i = 0; i < width; ++i) h[i] += model_.branch * y[i];
        outputs.push_back(y);
      }
    }
    Values dh = back_through_loss(token, h, count);
    for (std::size_t at = inputs.size(); at-- > 0;) {
      const std::size_t layer = at / model_.maps_per_layer;
      const std::size_t map = at % model_.maps_per_layer;
      Values g(width);
      for (std::size_t i = 0; i < width; ++i)
        g[i] = model_.branch * dh[i] * (1 - outputs[at][i] * outputs[at][i]);
      Values& both = result_.curvature.back()[layer][map];
      const double a_scale = curvature_scale(ActionType::CurvatureA, layer, map, micro_batch);
      const double b_scale = curvature_scale(ActionType::CurvatureB, layer, map, micro_batch);
      for (std::size_t i = 0; i < width; ++i) {
        result_.gradients[layer][2 * map + 1][i] += g[i];
        for (std::size_t j = 0; j < width; ++j) {
          result_.gradients[layer][2 * map][i * width + j] += g[i] * inputs[at][j];
          both[i * width + j] += a_scale * inputs[at][i] * inputs[at][j];
          both[width * width + i * width + j] += b_scale * g[i] * g[j] * count * count;
          dh[j] += result_.parameters[layer][2 * map][i * width + j] * g[i];
        }
      }
    }
    for (std::size_t i = 0; i < width; ++i) {
      embedding_of(result_.gradients)[token.input * width + i] += dh[i];
    }
  }

  /// Sides are CurvatureA and CurvatureB.
  using Covered =
      std::tuple<ActionType, std::size_t, std::size_t, std::size_t>;  // side, layer, map, micro-batch

  /// Of each micro-batch that a map's A or B covers, 1 / the tokens of all of them.
  void find_curvature_scales() {
    std::set<Covered> scheduled;
    for (const schedule::RankProgram& rank : schedule_.ranks) {
      for (const Action& action : rank.lane(schedule::Lane::Compute).actions()) {
        scheduled.emplace(action.type, action.first_layer.index(), action.factor, action.micro_batch.index());
      }
    }
    for (const ActionType side : {ActionType::CurvatureA, ActionType::CurvatureB}) {
      for (std::size_t layer = 0; layer < parameters_.size(); ++layer) {
        for (std::size_t map = 0; map < model_.maps_per_layer; ++map) {
          std::vector<std::size_t> covered;
          std::size_t count = 0;
          for (std::size_t m = 0; m < problem_.num_micro_batches; ++m) {
            if (problem_.has_partial_curvature && !scheduled.contains({side, layer, map, m})) continue;
            covered.push_back(m);
            count += toy_tokens(model_, problem_, 0, m).size();
          }
          for (const std::size_t m : covered)
            curvature_scales_[{side, layer, map, m}] = 1 / static_cast<double>(count);
        }
      }
    }
  }
  /// 0 of a micro-batch that is not covered.
  double curvature_scale(ActionType side, std::size_t layer, std::size_t map, std::size_t micro_batch) const {
    const auto found = curvature_scales_.find({side, layer, map, micro_batch});
    return found == curvature_scales_.end() ? 0 : found->second;
  }

  Values back_through_loss(const ToyToken& token, const Values& h, double count) {
    const std::size_t width = model_.width;
    const Values& decoder = result_.parameters.back().back();
    Values& gradient = result_.gradients.back().back();
    Values logits(model_.vocabulary, 0.0);
    double sum = 0;
    for (std::size_t v = 0; v < logits.size(); ++v) {
      for (std::size_t i = 0; i < width; ++i) logits[v] += decoder[v * width + i] * h[i];
      sum += std::exp(logits[v]);
    }
    result_.losses.back() += (std::log(sum) - logits[token.target]) / count;
    Values dh(width, 0.0);
    for (std::size_t v = 0; v < logits.size(); ++v) {
      const double d = (std::exp(logits[v]) / sum - (v == token.target ? 1 : 0)) / count;
      for (std::size_t i = 0; i < width; ++i) {
        dh[i] += d * decoder[v * width + i];
        gradient[v * width + i] += d * h[i];
      }
    }
    return dh;
  }

  void tie() {
    if (!problem_.has_tied_parameters) return;
    Values& first = embedding_of(result_.gradients);
    Values& last = result_.gradients.back().back();
    for (std::size_t i = 0; i < first.size(); ++i) {
      first[i] += last[i];
      last[i] = first[i];
    }
  }

  /// The first action of a type for a layer that some rank does in a step; for a map, the rank that owns it.
  std::optional<Action> find_action(ActionType type, std::uint64_t step, std::size_t layer,
                                    std::optional<std::size_t> map) const {
    const auto stage = schedule::StageId::at(stage_of_layer_[layer]);
    std::vector<const schedule::RankProgram*> holders;
    for (const schedule::RankProgram& rank : schedule_.ranks) {
      for (const schedule::StageId held : rank.stages) {
        if (held == stage) holders.push_back(&rank);
      }
    }
    std::size_t first = layer;
    while (first > 0 && stage_of_layer_[first - 1] == stage.index()) --first;
    const auto num_layers = static_cast<std::size_t>(
        std::count(stage_of_layer_.begin(), stage_of_layer_.end(), stage_of_layer_[layer]));
    const std::size_t owner = map ? (*map * num_layers + layer - first) % holders.size() : 0;
    const schedule::LaneProgram& lane = holders[owner]->lane(schedule::Lane::Compute);
    for (const Action& action : lane.step(step % schedule_.num_steps())) {
      if (action.type == type && action.first_layer.index() <= layer && layer < action.end_layer.index()) {
        return action;
      }
    }
    return std::nullopt;
  }

  void accumulate(std::uint64_t step, double clipping) {
    for (std::size_t layer = 0; layer < parameters_.size(); ++layer) {
      if (!find_action(ActionType::AccumulateFactor, step, layer, std::nullopt)) continue;
      for (std::size_t map = 0; map < model_.maps_per_layer; ++map) {
        const Matrix g = square_of(result_.gradients[layer][2 * map], model_.width);
        const Matrix left = multiply(g, transpose(g));
        const Matrix right = multiply(transpose(g), g);
        Moments& moments = moments_[layer][map];
        for (std::size_t i = 0; i < model_.width; ++i) {
          for (std::size_t j = 0; j < model_.width; ++j) {
            moments.left[i][j] = model_.factor_decay * moments.left[i][j] + clipping * clipping * left[i][j];
            moments.right[i][j] =
                model_.factor_decay * moments.right[i][j] + clipping * clipping * right[i][j];
          }
        }
      }
    }
    moments_of_step_.push_back(moments_);
  }

  void precondition(std::uint64_t step) {
    for (std::size_t layer = 0; layer < parameters_.size(); ++layer) {
      for (std::size_t map = 0; map < model_.maps_per_layer; ++map) {
        const std::optional<Action> action = find_action(ActionType::Precondition, step, layer, map);
        if (!action || step < first_step_ + action->age) continue;
        const std::uint64_t num_steps_before = step - action->age - first_step_;
        Values& gradient = result_.gradients[layer][2 * map];
        const Matrix g = square_of(gradient, model_.width);
        const Moments sides = problem_.preconditioner == Preconditioner::Kfac
                                  ? kfac_inverses(num_steps_before, layer, map)
                                  : shampoo_roots(num_steps_before, layer, map);
        gradient = flat_of(multiply(multiply(sides.left, g), sides.right));
      }
    }
  }

  Moments kfac_inverses(std::uint64_t step, std::size_t layer, std::size_t map) const {
    const Values& both = result_.curvature[step][layer][map];
    const std::size_t n = model_.width;
    const Matrix a = square_of(both, n);
    const Matrix b = square_of(Values(both.begin() + static_cast<std::ptrdiff_t>(n * n), both.end()), n);
    const double pi = std::sqrt(trace(a) / trace(b));
    const double root = std::sqrt(model_.damping);
    return {inverse(with_diagonal(b, root / pi)), inverse(with_diagonal(a, root * pi))};
  }

  Moments shampoo_roots(std::uint64_t step, std::size_t layer, std::size_t map) const {
    const Moments& of = moments_of_step_[step][layer][map];
    return {inverse_fourth_root_of(with_diagonal(of.left, model_.damping)),
            inverse_fourth_root_of(with_diagonal(of.right, model_.damping))};
  }

  double clipping_of_gradients() const {
    double sum = 0;
    for (std::size_t layer = 0; layer < parameters_.size(); ++layer) {
      for (std::size_t p = 0; p < parameters_[layer].size(); ++p) {
        const bool is_counted_already =
            problem_.has_tied_parameters && parameters_[layer][p].kind == ParameterKind::Decoder;
        if (is_counted_already) continue;
        for (const double g : result_.gradients[layer][p]) sum += g * g;
      }
    }
    const double norm = std::sqrt(sum);
    return norm > model_.greatest_norm ? model_.greatest_norm / norm : 1.0;
  }

  void update(double clipping) {
    for (std::size_t layer = 0; layer < parameters_.size(); ++layer) {
      for (std::size_t p = 0; p < parameters_[layer].size(); ++p) {
        double squares = 0;
        for (std::size_t i = 0; i < momentum_[layer][p].size(); ++i) {
          double& v = momentum_[layer][p][i];
          v = model_.momentum * v + clipping * result_.gradients[layer][p][i];
          squares += v * v;
        }
        const double scale = problem_.has_tensor_norms ? 1 / (1 + squares) : 1;
        for (std::size_t i = 0; i < momentum_[layer][p].size(); ++i) {
          result_.parameters[layer][p][i] -= model_.learning_rate * scale * momentum_[layer][p][i];
        }
      }
    }
  }

  const schedule::Schedule& schedule_;
  std::uint64_t first_step_;
  const schedule::Problem& problem_;
  ToyModel model_;
  std::vector<std::size_t> stage_of_layer_;
  std::map<Covered, double> curvature_scales_;
  std::vector<std::vector<ToyParameter>> parameters_;
  std::vector<std::vector<Values>> momentum_;
  std::vector<std::vector<Moments>> moments_;
  std::vector<std::vector<std::vector<Moments>>> moments_of_step_;
  SerialResult result_;
};

}  // namespace

SerialResult train_serially(const schedule::Schedule& schedule, std::uint64_t num_steps,
                            std::uint64_t first_step) {
  return SerialTraining(schedule, first_step).run(num_steps);
}

}  // namespace plenum::pipeline
