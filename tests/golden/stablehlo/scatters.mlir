module @scatters attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<3x2xf32>, %arg1: tensor<3x1xi64>, %arg2: tensor<3x2xf32>, %arg3: tensor<2x2xi32>, %arg4: tensor<2xf32>) -> (tensor<3x2xf32>, tensor<3x2xf32>) {
    %1 = "stablehlo.scatter"(%arg0, %arg1, %arg2) ({
    ^bb0(%b0: tensor<f32>, %b1: tensor<f32>):
      %0 = "stablehlo.add"(%b0, %b1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%0) : (tensor<f32>) -> ()
    }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<3x2xf32>, tensor<3x1xi64>, tensor<3x2xf32>) -> tensor<3x2xf32>
    %2 = "stablehlo.scatter"(%arg0, %arg3, %arg4) ({
    ^bb0(%b2: tensor<f32>, %b3: tensor<f32>):
      "stablehlo.return"(%b3) : (tensor<f32>) -> ()
    }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = true} : (tensor<3x2xf32>, tensor<2x2xi32>, tensor<2xf32>) -> tensor<3x2xf32>
    "func.return"(%1, %2) : (tensor<3x2xf32>, tensor<3x2xf32>) -> ()
  }
}
