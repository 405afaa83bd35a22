module @sluice attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<6xf32>, %arg1: tensor<f32>, %arg2: tensor<6xf32>) -> (tensor<6xf32>, tensor<f32>) {
    %0 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
    %1 = "stablehlo.multiply"(%arg1, %0) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %2 = "stablehlo.slice"(%arg0) {start_indices = array<i64: 5>, limit_indices = array<i64: 6>, strides = array<i64: 1>} : (tensor<6xf32>) -> tensor<1xf32>
    %3 = "stablehlo.reshape"(%2) : (tensor<1xf32>) -> tensor<f32>
    %4 = "stablehlo.add"(%3, %1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %5 = "stablehlo.constant"() {value = dense<5> : tensor<i64>} : () -> tensor<i64>
    %6 = "stablehlo.reshape"(%4) : (tensor<f32>) -> tensor<1xf32>
    %7 = "stablehlo.dynamic_update_slice"(%arg2, %6, %5) : (tensor<6xf32>, tensor<1xf32>, tensor<i64>) -> tensor<6xf32>
    %8 = "stablehlo.multiply"(%arg1, %4) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %9 = "stablehlo.slice"(%arg0) {start_indices = array<i64: 4>, limit_indices = array<i64: 5>, strides = array<i64: 1>} : (tensor<6xf32>) -> tensor<1xf32>
    %10 = "stablehlo.reshape"(%9) : (tensor<1xf32>) -> tensor<f32>
    %11 = "stablehlo.add"(%10, %8) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %12 = "stablehlo.constant"() {value = dense<4> : tensor<i64>} : () -> tensor<i64>
    %13 = "stablehlo.reshape"(%11) : (tensor<f32>) -> tensor<1xf32>
    %14 = "stablehlo.dynamic_update_slice"(%7, %13, %12) : (tensor<6xf32>, tensor<1xf32>, tensor<i64>) -> tensor<6xf32>
    %15 = "stablehlo.multiply"(%arg1, %11) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %16 = "stablehlo.slice"(%arg0) {start_indices = array<i64: 3>, limit_indices = array<i64: 4>, strides = array<i64: 1>} : (tensor<6xf32>) -> tensor<1xf32>
    %17 = "stablehlo.reshape"(%16) : (tensor<1xf32>) -> tensor<f32>
    %18 = "stablehlo.add"(%17, %15) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %19 = "stablehlo.constant"() {value = dense<3> : tensor<i64>} : () -> tensor<i64>
    %20 = "stablehlo.reshape"(%18) : (tensor<f32>) -> tensor<1xf32>
    %21 = "stablehlo.dynamic_update_slice"(%14, %20, %19) : (tensor<6xf32>, tensor<1xf32>, tensor<i64>) -> tensor<6xf32>
    %22 = "stablehlo.multiply"(%arg1, %18) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %23 = "stablehlo.slice"(%arg0) {start_indices = array<i64: 2>, limit_indices = array<i64: 3>, strides = array<i64: 1>} : (tensor<6xf32>) -> tensor<1xf32>
    %24 = "stablehlo.reshape"(%23) : (tensor<1xf32>) -> tensor<f32>
    %25 = "stablehlo.add"(%24, %22) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %26 = "stablehlo.constant"() {value = dense<2> : tensor<i64>} : () -> tensor<i64>
    %27 = "stablehlo.reshape"(%25) : (tensor<f32>) -> tensor<1xf32>
    %28 = "stablehlo.dynamic_update_slice"(%21, %27, %26) : (tensor<6xf32>, tensor<1xf32>, tensor<i64>) -> tensor<6xf32>
    %29 = "stablehlo.multiply"(%arg1, %25) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %30 = "stablehlo.slice"(%arg0) {start_indices = array<i64: 1>, limit_indices = array<i64: 2>, strides = array<i64: 1>} : (tensor<6xf32>) -> tensor<1xf32>
    %31 = "stablehlo.reshape"(%30) : (tensor<1xf32>) -> tensor<f32>
    %32 = "stablehlo.add"(%31, %29) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %33 = "stablehlo.constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
    %34 = "stablehlo.reshape"(%32) : (tensor<f32>) -> tensor<1xf32>
    %35 = "stablehlo.dynamic_update_slice"(%28, %34, %33) : (tensor<6xf32>, tensor<1xf32>, tensor<i64>) -> tensor<6xf32>
    %36 = "stablehlo.multiply"(%arg1, %32) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %37 = "stablehlo.slice"(%arg0) {start_indices = array<i64: 0>, limit_indices = array<i64: 1>, strides = array<i64: 1>} : (tensor<6xf32>) -> tensor<1xf32>
    %38 = "stablehlo.reshape"(%37) : (tensor<1xf32>) -> tensor<f32>
    %39 = "stablehlo.add"(%38, %36) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %40 = "stablehlo.constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
    %41 = "stablehlo.reshape"(%39) : (tensor<f32>) -> tensor<1xf32>
    %42 = "stablehlo.dynamic_update_slice"(%35, %41, %40) : (tensor<6xf32>, tensor<1xf32>, tensor<i64>) -> tensor<6xf32>
    "func.return"(%42, %39) : (tensor<6xf32>, tensor<f32>) -> ()
  }
}
