module @sorts attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<2x4xf32>, %arg1: tensor<2x4xi32>) -> (tensor<2x4xf32>, tensor<2x4xi32>, tensor<2x4xf32>) {
    %1, %2 = "stablehlo.sort"(%arg0, %arg1) ({
    ^bb0(%b0: tensor<f32>, %b1: tensor<f32>, %b2: tensor<i32>, %b3: tensor<i32>):
      %0 = "stablehlo.compare"(%b0, %b1) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
      "stablehlo.return"(%0) : (tensor<i1>) -> ()
    }) {dimension = 1 : i64, is_stable = true} : (tensor<2x4xf32>, tensor<2x4xi32>) -> (tensor<2x4xf32>, tensor<2x4xi32>)
    %4 = "stablehlo.sort"(%arg0) ({
    ^bb0(%b4: tensor<f32>, %b5: tensor<f32>):
      %3 = "stablehlo.compare"(%b4, %b5) {comparison_direction = #stablehlo<comparison_direction GT>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
      "stablehlo.return"(%3) : (tensor<i1>) -> ()
    }) {dimension = 0 : i64, is_stable = false} : (tensor<2x4xf32>) -> tensor<2x4xf32>
    "func.return"(%1, %2, %4) : (tensor<2x4xf32>, tensor<2x4xi32>, tensor<2x4xf32>) -> ()
  }
}
