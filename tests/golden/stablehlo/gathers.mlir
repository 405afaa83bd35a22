module @gathers attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<3x4xf32>, %arg1: tensor<2x1xi64>, %arg2: tensor<2x2xi32>, %arg3: tensor<3xi32>) -> (tensor<2x4xf32>, tensor<2xf32>, tensor<3x3xf32>, tensor<2x2xf32>) {
    %0 = "stablehlo.gather"(%arg0, %arg1) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>, indices_are_sorted = false} : (tensor<3x4xf32>, tensor<2x1xi64>) -> tensor<2x4xf32>
    %1 = "stablehlo.gather"(%arg0, %arg2) {dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>, indices_are_sorted = false} : (tensor<3x4xf32>, tensor<2x2xi32>) -> tensor<2xf32>
    %2 = "stablehlo.gather"(%arg0, %arg3) {dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 3, 1>, indices_are_sorted = false} : (tensor<3x4xf32>, tensor<3xi32>) -> tensor<3x3xf32>
    %3 = "stablehlo.slice"(%arg3) {start_indices = array<i64: 0>, limit_indices = array<i64: 1>, strides = array<i64: 1>} : (tensor<3xi32>) -> tensor<1xi32>
    %4 = "stablehlo.gather"(%arg0, %3) {dimension_numbers = #stablehlo.gather<offset_dims = [0, 1], start_index_map = [1], index_vector_dim = 0>, slice_sizes = array<i64: 2, 2>, indices_are_sorted = false} : (tensor<3x4xf32>, tensor<1xi32>) -> tensor<2x2xf32>
    "func.return"(%0, %1, %2, %4) : (tensor<2x4xf32>, tensor<2xf32>, tensor<3x3xf32>, tensor<2x2xf32>) -> ()
  }
}
