module @sluice attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<2x4x64x64xf32>, %arg1: tensor<2xui64>) -> (tensor<2x4x64x64xf32>, tensor<2x4x64xf32>, tensor<2x4x64x64xf32>, tensor<2x4x64xf32>, tensor<2xui64>) {
    %163 = "stablehlo.transpose"(%arg0) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x4x64x64xf32>) -> tensor<2x64x4x64xf32>
    %164 = "stablehlo.transpose"(%arg0) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x4x64x64xf32>) -> tensor<2x64x4x64xf32>
    %165 = "stablehlo.transpose"(%arg0) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x4x64x64xf32>) -> tensor<2x64x4x64xf32>
    %166, %167 = "stablehlo.custom_call"(%163, %164, %165) {call_target_name = "sluice_attention", api_version = 4 : i32, has_side_effect = false, backend_config = {causal = 0 : i64, scale = 1.25000000000000000e-01 : f64}, operand_layouts = [dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>], result_layouts = [dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[2, 1, 0]> : tensor<3xindex>]} : (tensor<2x64x4x64xf32>, tensor<2x64x4x64xf32>, tensor<2x64x4x64xf32>) -> (tensor<2x64x4x64xf32>, tensor<2x4x64xf32>)
    %168 = "stablehlo.transpose"(%166) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x64x4x64xf32>) -> tensor<2x4x64x64xf32>
    %17 = "stablehlo.slice"(%arg1) {start_indices = array<i64: 0>, limit_indices = array<i64: 1>, strides = array<i64: 1>} : (tensor<2xui64>) -> tensor<1xui64>
    %18 = "stablehlo.reshape"(%17) : (tensor<1xui64>) -> tensor<ui64>
    %19 = "stablehlo.slice"(%arg1) {start_indices = array<i64: 1>, limit_indices = array<i64: 2>, strides = array<i64: 1>} : (tensor<2xui64>) -> tensor<1xui64>
    %20 = "stablehlo.reshape"(%19) : (tensor<1xui64>) -> tensor<ui64>
    %21 = "stablehlo.convert"(%20) : (tensor<ui64>) -> tensor<ui32>
    %22 = "stablehlo.constant"() {value = dense<0> : tensor<ui32>} : () -> tensor<ui32>
    %23 = "stablehlo.add"(%21, %22) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %24 = "stablehlo.constant"() {value = dense<32> : tensor<ui64>} : () -> tensor<ui64>
    %25 = "stablehlo.shift_right_logical"(%20, %24) : (tensor<ui64>, tensor<ui64>) -> tensor<ui64>
    %26 = "stablehlo.convert"(%25) : (tensor<ui64>) -> tensor<ui32>
    %27 = "stablehlo.shift_right_logical"(%18, %24) : (tensor<ui64>, tensor<ui64>) -> tensor<ui64>
    %28 = "stablehlo.convert"(%27) : (tensor<ui64>) -> tensor<ui32>
    %29 = "stablehlo.convert"(%18) : (tensor<ui64>) -> tensor<ui32>
    %30 = "stablehlo.constant"() {value = dense<17> : tensor<ui32>} : () -> tensor<ui32>
    %31 = "stablehlo.shift_right_logical"(%26, %30) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %32 = "stablehlo.xor"(%26, %31) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %33 = "stablehlo.constant"() {value = dense<3982152891> : tensor<ui32>} : () -> tensor<ui32>
    %34 = "stablehlo.multiply"(%32, %33) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %35 = "stablehlo.constant"() {value = dense<11> : tensor<ui32>} : () -> tensor<ui32>
    %36 = "stablehlo.shift_right_logical"(%34, %35) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %37 = "stablehlo.xor"(%34, %36) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %38 = "stablehlo.constant"() {value = dense<2890668881> : tensor<ui32>} : () -> tensor<ui32>
    %39 = "stablehlo.multiply"(%37, %38) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %40 = "stablehlo.constant"() {value = dense<15> : tensor<ui32>} : () -> tensor<ui32>
    %41 = "stablehlo.shift_right_logical"(%39, %40) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %42 = "stablehlo.xor"(%39, %41) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %43 = "stablehlo.constant"() {value = dense<830770091> : tensor<ui32>} : () -> tensor<ui32>
    %44 = "stablehlo.multiply"(%42, %43) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %45 = "stablehlo.constant"() {value = dense<14> : tensor<ui32>} : () -> tensor<ui32>
    %46 = "stablehlo.shift_right_logical"(%44, %45) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %47 = "stablehlo.xor"(%44, %46) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %48 = "stablehlo.xor"(%29, %47) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %49 = "stablehlo.constant"() {value = dense<2654435769> : tensor<ui32>} : () -> tensor<ui32>
    %50 = "stablehlo.multiply"(%23, %49) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %51 = "stablehlo.add"(%28, %50) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %52 = "stablehlo.shift_right_logical"(%51, %30) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %53 = "stablehlo.xor"(%51, %52) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %54 = "stablehlo.multiply"(%53, %33) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %55 = "stablehlo.shift_right_logical"(%54, %35) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %56 = "stablehlo.xor"(%54, %55) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %57 = "stablehlo.multiply"(%56, %38) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %58 = "stablehlo.shift_right_logical"(%57, %40) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %59 = "stablehlo.xor"(%57, %58) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %60 = "stablehlo.multiply"(%59, %43) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %61 = "stablehlo.shift_right_logical"(%60, %45) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %62 = "stablehlo.xor"(%60, %61) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %63 = "stablehlo.xor"(%62, %47) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %64 = "stablehlo.add"(%48, %63) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %65 = "stablehlo.constant"() {value = dense<2221713035> : tensor<ui32>} : () -> tensor<ui32>
    %66 = "stablehlo.multiply"(%64, %65) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %67 = "stablehlo.iota"() {iota_dimension = 3 : i64} : () -> tensor<2x2x4x64xui32>
    %68 = "stablehlo.iota"() {iota_dimension = 2 : i64} : () -> tensor<2x2x4x64xui32>
    %69 = "stablehlo.constant"() {value = dense<64> : tensor<2x2x4x64xui32>} : () -> tensor<2x2x4x64xui32>
    %70 = "stablehlo.multiply"(%68, %69) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %71 = "stablehlo.add"(%67, %70) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %72 = "stablehlo.iota"() {iota_dimension = 1 : i64} : () -> tensor<2x2x4x64xui32>
    %73 = "stablehlo.constant"() {value = dense<256> : tensor<2x2x4x64xui32>} : () -> tensor<2x2x4x64xui32>
    %74 = "stablehlo.multiply"(%72, %73) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %75 = "stablehlo.add"(%71, %74) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %76 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> tensor<2x2x4x64xui32>
    %77 = "stablehlo.constant"() {value = dense<512> : tensor<2x2x4x64xui32>} : () -> tensor<2x2x4x64xui32>
    %78 = "stablehlo.multiply"(%76, %77) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %79 = "stablehlo.add"(%75, %78) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %80 = "stablehlo.broadcast_in_dim"(%48) {broadcast_dimensions = array<i64>} : (tensor<ui32>) -> tensor<2x2x4x64xui32>
    %81 = "stablehlo.xor"(%79, %80) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %82 = "stablehlo.constant"() {value = dense<17> : tensor<2x2x4x64xui32>} : () -> tensor<2x2x4x64xui32>
    %83 = "stablehlo.shift_right_logical"(%81, %82) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %84 = "stablehlo.xor"(%81, %83) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %85 = "stablehlo.constant"() {value = dense<3982152891> : tensor<2x2x4x64xui32>} : () -> tensor<2x2x4x64xui32>
    %86 = "stablehlo.multiply"(%84, %85) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %87 = "stablehlo.broadcast_in_dim"(%63) {broadcast_dimensions = array<i64>} : (tensor<ui32>) -> tensor<2x2x4x64xui32>
    %88 = "stablehlo.xor"(%86, %87) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %89 = "stablehlo.constant"() {value = dense<11> : tensor<2x2x4x64xui32>} : () -> tensor<2x2x4x64xui32>
    %90 = "stablehlo.shift_right_logical"(%88, %89) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %91 = "stablehlo.xor"(%88, %90) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %92 = "stablehlo.constant"() {value = dense<2890668881> : tensor<2x2x4x64xui32>} : () -> tensor<2x2x4x64xui32>
    %93 = "stablehlo.multiply"(%91, %92) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %94 = "stablehlo.broadcast_in_dim"(%66) {broadcast_dimensions = array<i64>} : (tensor<ui32>) -> tensor<2x2x4x64xui32>
    %95 = "stablehlo.xor"(%93, %94) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %96 = "stablehlo.constant"() {value = dense<15> : tensor<2x2x4x64xui32>} : () -> tensor<2x2x4x64xui32>
    %97 = "stablehlo.shift_right_logical"(%95, %96) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %98 = "stablehlo.xor"(%95, %97) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %99 = "stablehlo.constant"() {value = dense<830770091> : tensor<2x2x4x64xui32>} : () -> tensor<2x2x4x64xui32>
    %100 = "stablehlo.multiply"(%98, %99) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %101 = "stablehlo.constant"() {value = dense<14> : tensor<2x2x4x64xui32>} : () -> tensor<2x2x4x64xui32>
    %102 = "stablehlo.shift_right_logical"(%100, %101) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %103 = "stablehlo.xor"(%100, %102) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %104 = "stablehlo.add"(%103, %81) : (tensor<2x2x4x64xui32>, tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xui32>
    %105 = "stablehlo.constant"() {value = dense<0.1> : tensor<f32>} : () -> tensor<f32>
    %169 = "stablehlo.transpose"(%arg0) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x4x64x64xf32>) -> tensor<2x64x4x64xf32>
    %170 = "stablehlo.transpose"(%arg0) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x4x64x64xf32>) -> tensor<2x64x4x64xf32>
    %171 = "stablehlo.transpose"(%arg0) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x4x64x64xf32>) -> tensor<2x64x4x64xf32>
    %172 = "stablehlo.bitcast_convert"(%104) : (tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xf32>
    %173, %174 = "stablehlo.custom_call"(%169, %170, %171, %172, %105) {call_target_name = "sluice_attention", api_version = 4 : i32, has_side_effect = false, backend_config = {causal = 1 : i64, scale = 1.25000000000000000e-01 : f64, dropout = 1 : i64}, operand_layouts = [dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<> : tensor<0xindex>], result_layouts = [dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[2, 1, 0]> : tensor<3xindex>]} : (tensor<2x64x4x64xf32>, tensor<2x64x4x64xf32>, tensor<2x64x4x64xf32>, tensor<2x2x4x64xf32>, tensor<f32>) -> (tensor<2x64x4x64xf32>, tensor<2x4x64xf32>)
    %175 = "stablehlo.transpose"(%173) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x64x4x64xf32>) -> tensor<2x4x64x64xf32>
    "func.return"(%168, %167, %175, %174, %arg1) : (tensor<2x4x64x64xf32>, tensor<2x4x64xf32>, tensor<2x4x64x64xf32>, tensor<2x4x64xf32>, tensor<2xui64>) -> ()
  }
}
