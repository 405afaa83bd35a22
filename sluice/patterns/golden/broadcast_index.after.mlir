module @sluice attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<4x7xi64>, %arg1: tensor<4x9x32xf32>, %arg2: tensor<4x9x32xf32>) -> (tensor<4x7x32xf32>, tensor<4x9x32xf32>) {
    %0 = "stablehlo.broadcast_in_dim"(%arg0) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<4x7xi64>) -> tensor<4x7x32xi64>
    %1 = "stablehlo.convert"(%0) : (tensor<4x7x32xi64>) -> tensor<4x7x32xi32>
    %18 = "stablehlo.slice"(%1) {start_indices = array<i64: 0, 0, 0>, limit_indices = array<i64: 4, 7, 1>, strides = array<i64: 1, 1, 1>} : (tensor<4x7x32xi32>) -> tensor<4x7x1xi32>
    %19 = "stablehlo.reshape"(%18) : (tensor<4x7x1xi32>) -> tensor<4x7xi32>
    %20 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> tensor<4x7xi32>
    %21 = "stablehlo.reshape"(%20) : (tensor<4x7xi32>) -> tensor<4x7x1xi32>
    %22 = "stablehlo.reshape"(%19) : (tensor<4x7xi32>) -> tensor<4x7x1xi32>
    %23 = "stablehlo.concatenate"(%21, %22) {dimension = 2 : i64} : (tensor<4x7x1xi32>, tensor<4x7x1xi32>) -> tensor<4x7x2xi32>
    %24 = "stablehlo.gather"(%arg1, %23) {dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1, 32>, indices_are_sorted = false} : (tensor<4x9x32xf32>, tensor<4x7x2xi32>) -> tensor<4x7x32xf32>
    %9 = "stablehlo.convert"(%0) : (tensor<4x7x32xi64>) -> tensor<4x7x32xi32>
    %25 = "stablehlo.slice"(%9) {start_indices = array<i64: 0, 0, 0>, limit_indices = array<i64: 4, 7, 1>, strides = array<i64: 1, 1, 1>} : (tensor<4x7x32xi32>) -> tensor<4x7x1xi32>
    %26 = "stablehlo.reshape"(%25) : (tensor<4x7x1xi32>) -> tensor<4x7xi32>
    %27 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> tensor<4x7xi32>
    %28 = "stablehlo.reshape"(%27) : (tensor<4x7xi32>) -> tensor<4x7x1xi32>
    %29 = "stablehlo.reshape"(%26) : (tensor<4x7xi32>) -> tensor<4x7x1xi32>
    %30 = "stablehlo.concatenate"(%28, %29) {dimension = 2 : i64} : (tensor<4x7x1xi32>, tensor<4x7x1xi32>) -> tensor<4x7x2xi32>
    %32 = "stablehlo.scatter"(%arg2, %30, %24) ({
    ^bb0(%b2: tensor<f32>, %b3: tensor<f32>):
      %31 = "stablehlo.add"(%b2, %b3) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%31) : (tensor<f32>) -> ()
    }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 2>, indices_are_sorted = false, unique_indices = false} : (tensor<4x9x32xf32>, tensor<4x7x2xi32>, tensor<4x7x32xf32>) -> tensor<4x9x32xf32>
    "func.return"(%24, %32) : (tensor<4x7x32xf32>, tensor<4x9x32xf32>) -> ()
  }
}
