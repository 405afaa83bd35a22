module @sluice attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<4x7xi64>, %arg1: tensor<4x9x32xf32>, %arg2: tensor<4x9x32xf32>) -> (tensor<4x7x32xf32>, tensor<4x9x32xf32>) {
    %0 = "stablehlo.broadcast_in_dim"(%arg0) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<4x7xi64>) -> tensor<4x7x32xi64>
    %1 = "stablehlo.convert"(%0) : (tensor<4x7x32xi64>) -> tensor<4x7x32xi32>
    %2 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> tensor<4x7x32xi32>
    %3 = "stablehlo.reshape"(%2) : (tensor<4x7x32xi32>) -> tensor<4x7x32x1xi32>
    %4 = "stablehlo.reshape"(%1) : (tensor<4x7x32xi32>) -> tensor<4x7x32x1xi32>
    %5 = "stablehlo.iota"() {iota_dimension = 2 : i64} : () -> tensor<4x7x32xi32>
    %6 = "stablehlo.reshape"(%5) : (tensor<4x7x32xi32>) -> tensor<4x7x32x1xi32>
    %7 = "stablehlo.concatenate"(%3, %4, %6) {dimension = 3 : i64} : (tensor<4x7x32x1xi32>, tensor<4x7x32x1xi32>, tensor<4x7x32x1xi32>) -> tensor<4x7x32x3xi32>
    %8 = "stablehlo.gather"(%arg1, %7) {dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1, 2], start_index_map = [0, 1, 2], index_vector_dim = 3>, slice_sizes = array<i64: 1, 1, 1>, indices_are_sorted = false} : (tensor<4x9x32xf32>, tensor<4x7x32x3xi32>) -> tensor<4x7x32xf32>
    %9 = "stablehlo.convert"(%0) : (tensor<4x7x32xi64>) -> tensor<4x7x32xi32>
    %10 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> tensor<4x7x32xi32>
    %11 = "stablehlo.reshape"(%10) : (tensor<4x7x32xi32>) -> tensor<4x7x32x1xi32>
    %12 = "stablehlo.reshape"(%9) : (tensor<4x7x32xi32>) -> tensor<4x7x32x1xi32>
    %13 = "stablehlo.iota"() {iota_dimension = 2 : i64} : () -> tensor<4x7x32xi32>
    %14 = "stablehlo.reshape"(%13) : (tensor<4x7x32xi32>) -> tensor<4x7x32x1xi32>
    %15 = "stablehlo.concatenate"(%11, %12, %14) {dimension = 3 : i64} : (tensor<4x7x32x1xi32>, tensor<4x7x32x1xi32>, tensor<4x7x32x1xi32>) -> tensor<4x7x32x3xi32>
    %17 = "stablehlo.scatter"(%arg2, %15, %8) ({
    ^bb0(%b0: tensor<f32>, %b1: tensor<f32>):
      %16 = "stablehlo.add"(%b0, %b1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%16) : (tensor<f32>) -> ()
    }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1, 2], scatter_dims_to_operand_dims = [0, 1, 2], index_vector_dim = 3>, indices_are_sorted = false, unique_indices = false} : (tensor<4x9x32xf32>, tensor<4x7x32x3xi32>, tensor<4x7x32xf32>) -> tensor<4x9x32xf32>
    "func.return"(%8, %17) : (tensor<4x7x32xf32>, tensor<4x9x32xf32>) -> ()
  }
}
